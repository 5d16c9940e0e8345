-- Values by periods of a calendar: their sum, mean, least and greatest, and how many they are.
-- Rules: a value belongs to the period in which its sample starts; a period without one is left out.
--
-- samples (start_time, value): what is asked about. periods (start_time, end_time): periods of a calendar in
-- its zone, without gaps. Times are microseconds since 1970. $step: microseconds, of which every boundary of
-- a period is a multiple; 900000000, a quarter of an hour, divides those of every zone since 1970, and
-- 3600000000 those of most.
--
-- Steps first, then periods: to look for the period of each value, or for its day in a zone, costs far more
-- than to add the values up. Nothing here is of one engine alone, where `/` divides whole numbers: DataFusion
-- runs it, and DuckDB with `SET integer_division = true`.
WITH part AS (
    SELECT
        start_time / $step AS number,
        sum(value) AS sum,
        min(value) AS min,
        max(value) AS max,
        count(value) AS count
    FROM samples
    GROUP BY start_time / $step
),
part_of_period AS (
    SELECT start_time AS period_start_time, unnest(range(start_time / $step, end_time / $step)) AS number
    FROM periods
)
SELECT
    period_start_time,
    sum(sum) AS sum,
    sum(sum) / sum(count) AS avg,
    min(min) AS min,
    max(max) AS max,
    sum(count) AS count
FROM part_of_period
JOIN part ON part.number = part_of_period.number
GROUP BY period_start_time
ORDER BY period_start_time
