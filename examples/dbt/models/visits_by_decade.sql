SELECT CAST(age // 10 * 10 AS VARCHAR) AS decade, plan, visits FROM marts.patients
