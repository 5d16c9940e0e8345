-- Heart rate by day of New York, as one writes it first.
SELECT
    timezone('America/New_York', start_date)::DATE::VARCHAR AS day,
    sum(value) AS sum,
    avg(value) AS avg,
    min(value) AS min,
    max(value) AS max
FROM heart
WHERE start_date >= $start::TIMESTAMPTZ AND start_date < $end::TIMESTAMPTZ
GROUP BY day
ORDER BY day
