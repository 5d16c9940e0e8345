-- How long each stage lasted, by the day of New York on which the cycle ended. The unit is what one cycle
-- spends in one stage. Not queries/sleep_agg.sql, which knows any calendar and takes DuckDB more than twice
-- as long.
WITH rows_of_cycles AS (
    {sleep_rows}
),
cycles AS (
    SELECT cycle, timezone('America/New_York', make_timestamptz(max(ends) - 1))::DATE::VARCHAR AS day
    FROM rows_of_cycles
    GROUP BY cycle
),
units AS (
    SELECT
        cycle,
        stage,
        sum(ends - begins) / 1000.0 AS length,
        min(begins) AS first_start,
        max(ends) AS last_end
    FROM rows_of_cycles
    GROUP BY cycle, stage
)
SELECT
    day,
    stage AS value,
    sum(length) AS sum_ms,
    avg(length) AS avg_ms,
    min(length) AS min_ms,
    max(length) AS max_ms,
    make_timestamptz(min(first_start)) AS min_start_time,
    make_timestamptz(max(last_end)) AS max_end_time,
    count(*) AS cycles
FROM units
JOIN cycles USING (cycle)
GROUP BY day, stage
ORDER BY day, stage
