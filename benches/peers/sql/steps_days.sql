-- Steps by day of New York: the sum of what counts, and the average, least and greatest of the records that
-- start in the day, whoever made them. Hours first, as in queries/aggregates.sql.
WITH counted AS (
    {steps_hours}
),
recorded AS (
    SELECT
        epoch_us(start_date) // 3600000000 AS hour,
        sum(value) AS sum,
        count(*) AS count,
        min(value) AS min,
        max(value) AS max
    FROM steps
    WHERE start_date < $end::TIMESTAMPTZ AND end_date > $start::TIMESTAMPTZ
    GROUP BY hour
)
SELECT
    timezone('America/New_York', make_timestamptz(hour * 3600000000))::DATE::VARCHAR AS day,
    sum(step_count) AS sum,
    sum(recorded.sum) / sum(count) AS avg,
    min(min) AS min,
    max(max) AS max
FROM counted
FULL JOIN recorded USING (hour)
GROUP BY day
ORDER BY day
