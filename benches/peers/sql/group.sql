-- Five metrics by hour: the means of two, the amounts of three. Hours in which nothing was measured are left
-- out.
WITH heart_hours AS (
    SELECT epoch_us(start_date) // 3600000000 AS hour, avg(value) AS heart_rate
    FROM heart
    WHERE start_date >= $start::TIMESTAMPTZ AND start_date < $end::TIMESTAMPTZ
    GROUP BY hour
),
oxygen_hours AS (
    SELECT epoch_us(start_date) // 3600000000 AS hour, avg(value) AS oxygen
    FROM oxygen
    WHERE start_date >= $start::TIMESTAMPTZ AND start_date < $end::TIMESTAMPTZ
    GROUP BY hour
),
steps_hours AS (
    {steps_hours}
),
-- One source each, so that all of it counts: only the edges of hours cut it.
burned AS (
    SELECT
        data_type,
        value / (epoch_us(end_date) - epoch_us(start_date)) AS rate,
        greatest(epoch_us(start_date), epoch_us($start::TIMESTAMPTZ)) AS begins,
        least(epoch_us(end_date), epoch_us($end::TIMESTAMPTZ)) AS ends
    FROM energy
    WHERE start_date < $end::TIMESTAMPTZ AND end_date > $start::TIMESTAMPTZ
),
burned_hours AS (
    SELECT
        hour,
        sum(rate * (least(ends, (hour + 1) * 3600000000) - greatest(begins, hour * 3600000000)))
            FILTER (data_type = 'ActiveCaloriesBurned') AS active,
        sum(rate * (least(ends, (hour + 1) * 3600000000) - greatest(begins, hour * 3600000000)))
            FILTER (data_type = 'BasalCaloriesBurned') AS basal
    FROM (SELECT *, unnest(range(begins // 3600000000, (ends - 1) // 3600000000 + 1)) AS hour FROM burned)
    GROUP BY hour
)
SELECT make_timestamptz(hour * 3600000000) AS time, heart_rate, step_count, active, basal, oxygen
FROM heart_hours
FULL JOIN steps_hours USING (hour)
FULL JOIN burned_hours USING (hour)
FULL JOIN oxygen_hours USING (hour)
ORDER BY hour
