-- A dbt model would say {{ ref("...") }} or {{ source("...") }} here; these patients are invented.
SELECT
    range AS patient,
    CAST(20 + hash(range) % 60 AS INTEGER) AS age,
    ['family', 'single'][1 + CAST(hash(range, 1) % 2 AS INTEGER)] AS plan,
    CAST(hash(range, 2) % 9 AS INTEGER) AS visits
FROM range(1000)
