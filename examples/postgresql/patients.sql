-- Invented patients. md5 takes the place of chance, so that everybody has the same table.
CREATE TABLE patients AS
SELECT
    'P' || lpad(n::text, 5, '0') AS patient,
    20 + ('x' || substr(md5(n::text), 1, 4))::bit(16)::int % 60 AS age,
    (ARRAY['female', 'male'])[1 + ('x' || substr(md5(n::text), 5, 4))::bit(16)::int % 2] AS sex,
    (ARRAY['81667', '81669', '81675', '80331', '80333'])[1 + ('x' || substr(md5(n::text), 9, 4))::bit(16)::int % 5] AS zip,
    (ARRAY['asthma', 'diabetes', 'migraine', 'none'])[1 + ('x' || substr(md5(n::text), 13, 4))::bit(16)::int % 4] AS diagnosis
FROM generate_series(1, 1000) AS n;
