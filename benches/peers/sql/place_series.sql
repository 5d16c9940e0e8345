-- The last place known each quarter of an hour, at most four hours old, and the way from one to the next. All
-- places are equally accurate and of one source, so that an ASOF join may take any of those told for the same
-- moment; Almanac takes the best. Not queries/location_time_series.sql, which takes DuckDB twice as long.
WITH slots AS (
    SELECT unnest(generate_series(
        $start::TIMESTAMPTZ,
        $end::TIMESTAMPTZ - INTERVAL 1 MICROSECOND,
        INTERVAL 15 MINUTE
    )) AS slice_time
),
known AS (
    SELECT *
    FROM places
    WHERE time >= $start::TIMESTAMPTZ - INTERVAL 4 HOUR AND time < $end::TIMESTAMPTZ AND accuracy >= 0
),
place AS (
    SELECT slice_time, latitude, longitude, time
    FROM slots
    ASOF JOIN known ON slots.slice_time >= known.time
    WHERE time >= slice_time - INTERVAL 4 HOUR
),
pair AS (
    SELECT
        *,
        lag(latitude) OVER (ORDER BY slice_time) AS latitude_before,
        lag(longitude) OVER (ORDER BY slice_time) AS longitude_before
    FROM place
)
SELECT
    slice_time,
    latitude AS lat,
    longitude AS long,
    time,
    CASE WHEN latitude_before IS NOT NULL THEN 2 * 6371008.8 * asin(least(1, sqrt(
        power(sin(radians(latitude - latitude_before) / 2), 2)
        + cos(radians(latitude)) * cos(radians(latitude_before))
        * power(sin(radians(longitude - longitude_before) / 2), 2)
    ))) END AS distance_change_m
FROM pair
ORDER BY slice_time
