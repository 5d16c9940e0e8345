"""Days of a time zone: days-2y, steps-2y."""

from answers import days
from lines import Limit, Mark
from question import Question, ask
from spans import QUARTER, TWO_YEARS, between


def by_day(table):
    """The peers tell days by their dates."""
    return {"day": days(table["time"])} | {name: table[name] for name in ("sum", "avg", "min", "max")}


def path(metric):
    functions = "&function=sum&function=avg&function=min&function=max"
    rest = f"&time_zone=America/New_York{functions}"
    return lambda step: f"/data/v1alpha1/metric/{metric}/agg/day?{between(TWO_YEARS, step * QUARTER)}{rest}"


def days_2y(bench):
    return ask(
        bench,
        Question(
            job="days-2y",
            path=path("HeartRate"),
            form="json",
            columns=by_day,
            statement="days",
            parameters={"start": TWO_YEARS[0], "end": TWO_YEARS[1]},
            peers=["duckdb native", "duckdb file", "polars", "clickhouse", "datafusion", "fastapi"],
            variants={
                "duckdb native, straight": ("duckdb native", "days_straight"),
                "datafusion, straight": ("datafusion", "days_straight"),
            },
            data_type="HeartRate",
            record={
                "start_date": "2024-06-05T12:00:01Z",
                "end_date": "2024-06-05T12:00:01Z",
                "value": 61,
                "unit": "bpm",
            },
            gate=Mark("best", 0.5),
            mark=Limit(3),
            first=Limit(10),
        ),
    )


def steps_2y(bench):
    return ask(
        bench,
        Question(
            job="steps-2y",
            path=path("StepCount"),
            form="json",
            columns=by_day,
            statement="steps_days",
            parameters={"start": TWO_YEARS[0], "end": TWO_YEARS[1]},
            peers=["duckdb native", "fastapi"],
            data_type="StepCount",
            record={
                "start_date": "2024-06-05T12:00:00Z",
                "end_date": "2024-06-05T12:02:00Z",
                "value": 61,
                "unit": "steps",
            },
            gate=Mark("fastapi", 0.3),
            mark=Limit(6),
        ),
    )
