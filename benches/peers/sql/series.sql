-- Heart rate in windows of $width microseconds: the mean of the points in each. Windows without a point are
-- left out, and the person has one source of heart rates: both spare the peers work that Almanac does.
-- Integers instead of time_bucket, because it is quicker. Not queries/levels.sql, which means the same: it
-- decides between sources, and takes DuckDB three to four times as long.
SELECT make_timestamptz(epoch_us(start_date) // $width * $width) AS time, avg(value) AS heart_rate
FROM heart
WHERE start_date >= $start::TIMESTAMPTZ AND start_date < $end::TIMESTAMPTZ
GROUP BY time
ORDER BY time
