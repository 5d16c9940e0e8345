-- Sleep: how long each stage lasted in each period.
--
-- cycle_rows (cycle, start_time, end_time, stage, cycle_start, cycle_end): the rows of sleep_cycles.sql.
-- periods (start_time, end_time): periods of a calendar, without gaps.
-- $mode: 'start': a cycle belongs to the period in which it starts; 'end': to the one that holds its last
-- microsecond, so that a nap until midnight counts for its day; 'split': to each period belongs the part that
-- lies in it.
--
-- The unit is what one cycle spends in one stage (in 'split': in one period). A cycle without the stage is no
-- unit, so it does not count as nothing.
-- The service adds up as cycles close; a test keeps the two equal. It shows whole milliseconds, and computes
-- the mean from units in whole milliseconds, so that it lies between the shortest and the longest as they are
-- shown.
WITH placed AS (
    SELECT
        periods.start_time AS period_start_time,
        cycle_rows.cycle,
        cycle_rows.stage,
        CASE WHEN $mode = 'split' THEN greatest(cycle_rows.start_time, periods.start_time)
            ELSE cycle_rows.start_time END AS start_time,
        CASE WHEN $mode = 'split' THEN least(cycle_rows.end_time, periods.end_time)
            ELSE cycle_rows.end_time END AS end_time
    FROM cycle_rows
    JOIN periods ON
        ($mode = 'start' AND cycle_rows.cycle_start >= periods.start_time
            AND cycle_rows.cycle_start < periods.end_time)
        OR ($mode = 'end' AND cycle_rows.cycle_end - 1 >= periods.start_time
            AND cycle_rows.cycle_end - 1 < periods.end_time)
        OR ($mode = 'split' AND cycle_rows.start_time < periods.end_time
            AND cycle_rows.end_time > periods.start_time)
),
units AS (
    SELECT
        period_start_time,
        stage,
        cycle,
        sum(end_time - start_time) AS length,
        min(start_time) AS first_start,
        max(end_time) AS last_end
    FROM placed
    GROUP BY period_start_time, stage, cycle
)
SELECT
    period_start_time,
    stage AS value,
    sum(length) AS sum,
    avg(length) AS avg,
    min(length) AS min,
    max(length) AS max,
    min(first_start) AS min_start_time,
    max(last_end) AS max_end_time,
    count(*) AS cycles
FROM units
GROUP BY period_start_time, stage
ORDER BY period_start_time, value
