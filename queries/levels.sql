-- Levels on a grid: the mean, the least and the greatest of the samples that touch each window, and how many
-- they are.
-- Rules: a sample is a point of every window that it touches, and of all that it lasts through it counts once
-- in each (1.5); a moment touches the window that it lies in; where the best source counts, it is the best of
-- those that touch the window, with all of its samples there (1.4, 1.5).
-- $start, $end, $width: microseconds; $windows: how many there are; $best: whether only the best source
-- counts. A lesser rank is better.
WITH touching AS (
    SELECT *, unnest(range(
        (greatest(start_time, $start) - $start) / $width,
        (least(CASE WHEN end_time > start_time THEN end_time ELSE end_time + 1 END, $end) - 1 - $start)
            / $width + 1
    )) AS number
    FROM samples
    WHERE (end_time > start_time AND start_time < $end AND end_time > $start)
       OR (end_time = start_time AND start_time >= $start AND start_time < $end)
),
point AS (
    SELECT number, value, source, first_value(source) OVER (PARTITION BY number ORDER BY rank) AS best_source
    FROM touching
),
filled AS (
    SELECT number, avg(value) AS value, min(value) AS least, max(value) AS greatest, count(*) AS points
    FROM point
    WHERE source = best_source OR NOT $best
    GROUP BY number
),
every_window AS (
    SELECT unnest(range(0, $windows)) AS number
)
SELECT every_window.number, filled.value, filled.least, filled.greatest, coalesce(filled.points, 0) AS points
FROM every_window
LEFT JOIN filled ON every_window.number = filled.number
ORDER BY every_window.number
