-- Steps of two sources by hour since 1970.
--
-- Where the watch and the phone counted at the same time, the watch counts. An amount is spread evenly over
-- its interval, so what counts of the phone's is its rate times the time that the watch does not cover. How
-- much time the watch covers until a moment is a running sum, looked up at both ends of each piece by an ASOF
-- join. That is enough for two sources, and for steps, which always last; Almanac decides among any number,
-- instants included, as queries/series.sql does, which takes DuckDB more than four times as long.
WITH sample AS (
    SELECT
        rank,
        value / (epoch_us(end_date) - epoch_us(start_date)) AS rate,
        greatest(epoch_us(start_date), epoch_us($start::TIMESTAMPTZ)) AS begins,
        least(epoch_us(end_date), epoch_us($end::TIMESTAMPTZ)) AS ends
    FROM steps
    WHERE start_date < $end::TIMESTAMPTZ AND end_date > $start::TIMESTAMPTZ
),
worn AS (
    -- What each interval of the watch adds to what those before it cover.
    SELECT
        begins,
        ends,
        max(ends) OVER (ORDER BY begins, ends ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
    FROM sample
    WHERE rank = 0
),
added AS (
    SELECT greatest(begins, coalesce(reached, begins)) AS begins, ends
    FROM worn
    WHERE reached IS NULL OR ends > reached
),
covered AS (
    SELECT begins, ends, sum(ends - begins) OVER (ORDER BY begins) - (ends - begins) AS before
    FROM added
),
piece AS (
    SELECT
        rank,
        rate,
        hour,
        greatest(begins, hour * 3600000000) AS begins,
        least(ends, (hour + 1) * 3600000000) AS ends
    FROM (SELECT *, unnest(range(begins // 3600000000, (ends - 1) // 3600000000 + 1)) AS hour FROM sample)
),
counting AS (
    SELECT hour, rate * (ends - begins) AS amount
    FROM piece
    WHERE rank = 0
    UNION ALL
    SELECT
        hour,
        rate * (
            piece.ends - piece.begins
            - coalesce(until_end.before + least(piece.ends, until_end.ends) - until_end.begins, 0)
            + coalesce(until_start.before + least(piece.begins, until_start.ends) - until_start.begins, 0)
        )
    FROM piece
    ASOF LEFT JOIN covered AS until_start ON piece.begins >= until_start.begins
    ASOF LEFT JOIN covered AS until_end ON piece.ends >= until_end.begins
    WHERE rank = 1
)
SELECT hour, sum(amount) AS step_count
FROM counting
GROUP BY hour
