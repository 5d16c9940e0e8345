-- Sleep: which rows belong to which cycle (rule 3.5).
--
-- resolved (start_time, end_time, stage): the rows of sleep_resolve.sql. gap_stages (stage): stages that
-- count as time without sleep.
-- $gap: microseconds without sleep that part two cycles; so many, or more.
--
-- A cycle reaches from the first start to the last end of its rows. Rows of gap stages do not lengthen it;
-- those inside belong to it, others to none.
-- The service finds cycles as rows come, one after the other; a test keeps the two equal.
WITH asleep AS (
    SELECT resolved.*
    FROM resolved
    WHERE NOT EXISTS (SELECT 1 FROM gap_stages WHERE gap_stages.stage = resolved.stage)
),
reach AS (
    SELECT *, max(end_time) OVER (ORDER BY start_time, end_time
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM asleep
),
numbered AS (
    SELECT
        *,
        sum(CASE WHEN reached IS NULL OR start_time - reached >= $gap THEN 1 ELSE 0 END)
            OVER (ORDER BY start_time, end_time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - 1 AS cycle
    FROM reach
),
spans AS (
    SELECT cycle, min(start_time) AS cycle_start, max(end_time) AS cycle_end
    FROM numbered
    GROUP BY cycle
)
SELECT spans.cycle, resolved.start_time, resolved.end_time, resolved.stage, spans.cycle_start, spans.cycle_end
FROM resolved
JOIN spans ON resolved.start_time >= spans.cycle_start AND resolved.end_time <= spans.cycle_end
ORDER BY resolved.start_time
