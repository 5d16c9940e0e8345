-- Heart rate by day of New York: queries/aggregates.sql over the days of its calendar, in steps of an hour,
-- because all days there begin on a full hour.
WITH samples AS (
    SELECT epoch_us(start_date) AS start_time, value
    FROM heart
    WHERE start_date >= $start::TIMESTAMPTZ AND start_date < $end::TIMESTAMPTZ
),
days AS (
    SELECT unnest(generate_series(
        timezone('America/New_York', $start::TIMESTAMPTZ)::DATE::TIMESTAMP,
        timezone('America/New_York', $end::TIMESTAMPTZ)::DATE::TIMESTAMP,
        INTERVAL 1 DAY
    )) AS day
),
periods AS (
    SELECT
        epoch_us(timezone('America/New_York', day)) AS start_time,
        epoch_us(timezone('America/New_York', day + INTERVAL 1 DAY)) AS end_time
    FROM days
)
SELECT
    timezone('America/New_York', make_timestamptz(period_start_time))::DATE::VARCHAR AS day,
    sum,
    avg,
    min,
    max
FROM (
    {queries/aggregates with $step = 3600000000}
)
ORDER BY day
