-- Stages of sleep, with the cycle each belongs to.
SELECT
    cycle,
    make_timestamptz(begins) AS start_time,
    make_timestamptz(ends) AS end_time,
    stage AS sleep_stage,
    (ends - begins) / 1000.0 AS duration_ms
FROM (
    {sleep_rows}
)
ORDER BY begins
