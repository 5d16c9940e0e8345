-- Sleep without conflicts, and which row belongs to which cycle: what queries/sleep_resolve.sql and
-- queries/sleep_cycles.sql say, for one window and without stages that count as gaps. Those two take DuckDB
-- 1.7 times as long, because it has arg_max.
--
-- At every moment the stage with the greatest priority wins, then the later start, the earlier end, the
-- greater stage, the greater id.
WITH seen AS (
    SELECT
        uuid,
        value::INTEGER AS stage,
        CASE value WHEN 0 THEN 0 WHEN 2 THEN 1 ELSE 2 END AS priority,
        epoch_us(start_date) AS recorded_start,
        epoch_us(end_date) AS recorded_end,
        greatest(epoch_us(start_date), epoch_us($start::TIMESTAMPTZ)) AS begins,
        least(epoch_us(end_date), epoch_us($end::TIMESTAMPTZ)) AS ends
    FROM sleep
    WHERE start_date < $end::TIMESTAMPTZ AND end_date > $start::TIMESTAMPTZ AND end_date > start_date
),
reach AS (
    SELECT
        *,
        max(ends) OVER (
            ORDER BY begins, ends, uuid ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached
    FROM seen
),
-- What overlaps, directly or through others, is an island. It turns the comparison of all with all into a
-- join of few with few.
islands AS (
    SELECT *, sum(CASE WHEN reached IS NULL OR begins >= reached THEN 1 ELSE 0 END)
        OVER (ORDER BY begins, ends, uuid ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS island
    FROM reach
),
moments AS (
    SELECT island, begins AS moment FROM islands
    UNION
    SELECT island, ends AS moment FROM islands
),
pieces AS (
    SELECT island, moment AS begins, lead(moment) OVER (PARTITION BY island ORDER BY moment) AS ends
    FROM moments
),
-- DuckDB's arg_max needs no sorting of each piece's contenders, as row_number does.
winners AS (
    SELECT
        pieces.begins,
        pieces.ends,
        arg_max(stage, (priority, recorded_start, -recorded_end, stage, uuid)) AS stage
    FROM pieces
    JOIN islands ON islands.island = pieces.island
        AND islands.begins <= pieces.begins AND islands.ends >= pieces.ends
    WHERE pieces.ends IS NOT NULL
    GROUP BY pieces.begins, pieces.ends
),
changes AS (
    SELECT
        *,
        CASE
            WHEN lag(ends) OVER (ORDER BY begins) = begins
                AND lag(stage) OVER (ORDER BY begins) = stage THEN 0
            ELSE 1
        END AS changes
    FROM winners
),
numbered AS (
    SELECT *, sum(changes) OVER (ORDER BY begins ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS number
    FROM changes
),
resolved AS (
    SELECT min(begins) AS begins, max(ends) AS ends, any_value(stage) AS stage
    FROM numbered
    GROUP BY number
)
-- Rows no longer overlap, so the row before is the one that reaches furthest. Two hours without sleep part
-- two cycles.
SELECT
    *,
    sum(CASE WHEN begins - ended < 7200000000 THEN 0 ELSE 1 END)
        OVER (ORDER BY begins ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - 1 AS cycle
FROM (SELECT *, lag(ends) OVER (ORDER BY begins) AS ended FROM resolved)
