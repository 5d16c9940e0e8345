-- Amounts on a grid: what falls into each window when several sources measured the same time.
-- Rules: an interval has a uniform rate (1.3); in each part of time only the best source counts, with all of
-- its samples, those longer than seven days after all others (1.4a, 8.6); an instant counts where its source
-- is the best of those that have an interval around it or an instant beside it (1.4a); a window without a
-- sample is null (1.3).
-- $start, $end, $width: microseconds; $windows: how many there are. A lesser rank is better; samples of one
-- source may have several.
WITH sample AS (
    SELECT *, CASE WHEN end_time - start_time > 604800000000 THEN 1 ELSE 0 END AS is_long
    FROM samples
    WHERE (end_time > start_time AND start_time < $end AND end_time > $start)
       OR (end_time = start_time AND start_time >= $start AND start_time < $end)
),
-- Samples that overlap, directly or through others, form an island; parts of time are cut inside of islands
-- only.
reaching AS (
    SELECT *, max(end_time) OVER (ORDER BY start_time, end_time, id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM sample
    WHERE end_time > start_time
),
interval_of_island AS (
    SELECT *, sum(CASE WHEN reached IS NULL OR start_time >= reached THEN 1 ELSE 0 END)
        OVER (ORDER BY start_time, end_time, id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS island
    FROM reaching
),
edge AS (
    SELECT island, start_time AS moment FROM interval_of_island
    UNION
    SELECT island, end_time AS moment FROM interval_of_island
),
part AS (
    SELECT island, moment AS part_start, lead(moment) OVER (PARTITION BY island ORDER BY moment) AS part_end
    FROM edge
),
candidate AS (
    SELECT part.island, part_start, part_end, source, is_long, value / (end_time - start_time) AS rate,
        first_value(source) OVER (PARTITION BY part.island, part_start ORDER BY is_long, rank) AS best_source,
        first_value(is_long) OVER (PARTITION BY part.island, part_start
            ORDER BY is_long, rank) AS best_is_long
    FROM part
    JOIN interval_of_island AS covering ON part.island = covering.island
        AND start_time <= part_start AND end_time >= part_end
    WHERE part_end IS NOT NULL
),
counting AS (
    SELECT greatest(part_start, $start) AS from_time, least(part_end, $end) AS to_time, rate
    FROM candidate
    WHERE source = best_source AND is_long = best_is_long AND part_end > $start AND part_start < $end
),
spread AS (
    SELECT from_time, to_time, rate,
        unnest(range((from_time - $start) / $width, (to_time - 1 - $start) / $width + 1)) AS number
    FROM counting
),
instant AS (
    SELECT point.id, point.start_time, point.value,
        min(CASE WHEN other.source = point.source THEN other.rank END) AS own_rank,
        min(CASE WHEN other.source <> point.source THEN other.rank END) AS other_rank
    FROM sample AS point
    JOIN sample AS other ON other.is_long = 0 AND other.start_time <= point.start_time
        AND (other.end_time > point.start_time
            OR other.end_time = other.start_time AND other.start_time = point.start_time)
    WHERE point.end_time = point.start_time
    GROUP BY point.id, point.start_time, point.value
),
amount AS (
    SELECT number, rate * (least(to_time, $start + (number + 1) * $width)
        - greatest(from_time, $start + number * $width)) AS amount
    FROM spread
    UNION ALL
    SELECT (start_time - $start) / $width AS number, value AS amount
    FROM instant
    WHERE other_rank IS NULL OR own_rank < other_rank
),
filled AS (
    SELECT number, sum(amount) AS value
    FROM amount
    GROUP BY number
),
every_window AS (
    SELECT unnest(range(0, $windows)) AS number
)
SELECT every_window.number, filled.value
FROM every_window
LEFT JOIN filled ON every_window.number = filled.number
ORDER BY every_window.number
