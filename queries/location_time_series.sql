-- Places over time: at each slot the last position that was known.
-- Rules: positions that cannot be believed count for nothing (4.1); the newest at or before the slot, an
-- exact hit included, not older than the look-back, a slot without one left out (4.3); distance from the row
-- before on a sphere (4.4).
--
-- updates (id, time, latitude, longitude, accuracy, source): what was told, by whom; a lesser source is
-- believed first. slots (slot): the moments asked about.
-- $look_back: microseconds for which a position stays known.
--
-- Of what was told of the same moment the best comes last here: the surer, then the better source, then the
-- smaller id.
-- The service also falls back on visits and leaves out small changes; both need a memory that a window does
-- not have. A test keeps the rest equal.
WITH usable AS (
    SELECT * FROM updates
    WHERE accuracy >= 0 OR (accuracy IS NULL AND NOT (latitude = 0 AND longitude = 0))
),
-- One line of time with positions and slots on it. At the same moment the position comes first.
line AS (
    SELECT time AS moment, 0 AS is_slot, id, time, latitude, longitude, accuracy, source FROM usable
    UNION ALL
    SELECT slot, 1, NULL, NULL, NULL, NULL, NULL, NULL FROM slots
),
known AS (
    SELECT
        moment,
        is_slot,
        last_value(time IGNORE NULLS) OVER until_now AS time,
        last_value(latitude IGNORE NULLS) OVER until_now AS latitude,
        last_value(longitude IGNORE NULLS) OVER until_now AS longitude,
        last_value(source IGNORE NULLS) OVER until_now AS source
    FROM line
    WINDOW until_now AS (
        ORDER BY moment, is_slot, accuracy DESC NULLS FIRST, source DESC, id DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
place AS (
    SELECT moment AS slice_time, time, latitude, longitude, source
    FROM known
    WHERE is_slot = 1 AND time >= moment - $look_back
),
pair AS (
    SELECT *, lag(latitude) OVER (ORDER BY slice_time) AS latitude_before,
        lag(longitude) OVER (ORDER BY slice_time) AS longitude_before
    FROM place
)
SELECT
    slice_time,
    latitude AS lat,
    longitude AS long,
    time,
    -- least() passes over nulls: without a row before there would be half the way around the Earth.
    CASE WHEN latitude_before IS NOT NULL THEN 2 * 6371008.8 * asin(least(1, sqrt(
        power(sin(radians(latitude - latitude_before) / 2), 2)
        + cos(radians(latitude)) * cos(radians(latitude_before))
            * power(sin(radians(longitude - longitude_before) / 2), 2)
    ))) END AS distance_change_m,
    source
FROM pair
ORDER BY slice_time
