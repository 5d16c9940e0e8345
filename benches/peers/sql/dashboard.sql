-- Heart rate of one of the many by day.
SELECT epoch_us(start_date) // 86400000000 AS day, avg(value) AS avg, min(value) AS min, max(value) AS max
FROM people
WHERE person = $person AND data_type = 'HeartRate'
    AND start_date >= $start::TIMESTAMPTZ AND start_date < $end::TIMESTAMPTZ
GROUP BY day
ORDER BY day
