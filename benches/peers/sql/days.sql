-- Heart rate by day of New York. Hours first: to convert every time to a zone costs far more than to add the values up, and all days of this zone begin on
-- a full hour.
WITH hours AS (
    SELECT epoch_us(start_date) // 3600000000 AS hour, sum(value) AS sum, count(*) AS count, min(value) AS min, max(value) AS max
    FROM heart
    WHERE start_date >= $start::TIMESTAMPTZ AND start_date < $end::TIMESTAMPTZ
    GROUP BY hour
)
SELECT
    timezone('America/New_York', make_timestamptz(hour * 3600000000))::DATE::VARCHAR AS day,
    sum(sum) AS sum,
    sum(sum) / sum(count) AS avg,
    min(min) AS min,
    max(max) AS max
FROM hours
GROUP BY day
ORDER BY day
