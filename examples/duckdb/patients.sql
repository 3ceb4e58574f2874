-- Invented patients. `hash` takes the place of chance, so that everybody has the same table.
CREATE TABLE patients AS
SELECT
    range AS patient,
    CAST(20 + hash(range) % 6 * 10 AS INTEGER) AS age_band,
    ['female', 'male'][1 + CAST(hash(range, 1) % 2 AS INTEGER)] AS sex,
    ['north', 'south', 'west'][1 + CAST(hash(range, 2) % 3 AS INTEGER)] AS region,
    CAST(hash(range, 3) % 4 + hash(range, 4) % 3 AS INTEGER) AS visits
FROM range(2000);
