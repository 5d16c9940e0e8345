-- Sleep: which sample wins each moment, as rows without conflicts (rules 3.2 to 3.4).
--
-- samples (id, stage, priority, start_time, end_time): what was recorded. Times are microseconds since 1970;
-- priority is that of the stage.
-- windows (start_time, end_time): what may be seen of it. They do not touch each other.
--
-- At every moment the greatest of (priority, recorded start, - recorded end, stage, id) wins. Neighbours of
-- the same stage are one row. Samples of no length say nothing. The service computes this with a sweep over
-- the sorted samples; a test keeps the two equal.
WITH seen AS (
    -- Parts of samples that may be seen. What was recorded stays with them, because it decides who wins.
    SELECT
        samples.id,
        samples.stage,
        samples.priority,
        samples.start_time AS recorded_start,
        samples.end_time AS recorded_end,
        greatest(samples.start_time, windows.start_time) AS start_time,
        least(samples.end_time, windows.end_time) AS end_time
    FROM samples
    JOIN windows ON samples.start_time < windows.end_time AND samples.end_time > windows.start_time
    WHERE samples.end_time > samples.start_time
),
reach AS (
    -- How far everything before a part reaches.
    SELECT *, max(end_time) OVER (ORDER BY start_time, end_time, id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM seen
),
islands AS (
    -- Parts that overlap, directly or through others, lie on one island. It turns the comparison of all with
    -- all into a join of few with few.
    SELECT
        *,
        sum(CASE WHEN reached IS NULL OR start_time >= reached THEN 1 ELSE 0 END)
            OVER (ORDER BY start_time, end_time, id
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS island
    FROM reach
),
moments AS (
    -- Where something begins or ends.
    SELECT island, start_time AS moment FROM islands
    UNION
    SELECT island, end_time AS moment FROM islands
),
pieces AS (
    -- Between two such moments nothing changes.
    SELECT island, moment AS start_time, lead(moment) OVER (PARTITION BY island ORDER BY moment) AS end_time
    FROM moments
),
contenders AS (
    SELECT
        pieces.start_time,
        pieces.end_time,
        islands.stage,
        row_number() OVER (
            PARTITION BY pieces.start_time
            ORDER BY islands.priority DESC, islands.recorded_start DESC, islands.recorded_end ASC,
                islands.stage DESC, islands.id DESC
        ) AS place
    FROM pieces
    JOIN islands ON islands.island = pieces.island
        AND islands.start_time <= pieces.start_time AND islands.end_time >= pieces.end_time
    WHERE pieces.end_time IS NOT NULL
),
winners AS (
    SELECT start_time, end_time, stage,
        CASE
            WHEN lag(end_time) OVER (ORDER BY start_time) = start_time
                AND lag(stage) OVER (ORDER BY start_time) = stage THEN 0
            ELSE 1
        END AS begins
    FROM contenders
    WHERE place = 1
),
joined AS (
    SELECT *, sum(begins) OVER (ORDER BY start_time
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS number
    FROM winners
)
SELECT min(start_time) AS start_time, max(end_time) AS end_time, max(stage) AS stage
FROM joined
GROUP BY number
ORDER BY start_time
