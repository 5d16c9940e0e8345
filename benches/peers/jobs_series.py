"""Values in windows: series-1d, series-30d, series-1y, group-1y."""

import pyarrow.compute as pc

from lines import Limit, Mark
from question import Peer, Question, ask, columns_of
from spans import DAY, MAIN, MONTH, QUARTER, YEAR, between

MINUTE = 60
PATH = f"/data/v0/{MAIN}/metric_time_series"
BEAT = {"value": 61, "unit": "bpm"}
METRICS = ["HeartRate", "StepCount", "ActiveCaloriesBurned", "BasalCaloriesBurned", "BloodOxygenSaturation"]


def rows_with_values(table):
    """Almanac tells every window, the peers those in which there is something."""
    something = pc.is_valid(table[1])
    for name in table.column_names[2:]:
        something = pc.or_(something, pc.is_valid(table[name]))
    return columns_of(table.filter(something))


def series(bench, job, span, gate, mark):
    victoria, others = bench.victoria(), {}
    # It keeps answers: with them it has nothing left to do but to write them out, without them it computes.
    for label, cache in (("victoriametrics", True), ("victoriametrics, without its cache", False)):
        path = victoria.rollups(["avg"], "heart_rate", MAIN, span, MINUTE, cache)
        others[label] = Peer(
            victoria.pid,
            lambda path=path: victoria.get(path),
            lambda path=path: victoria.windows(path, ["avg"], MINUTE),
        )
    rest = f"&samprate={MINUTE}&output=arrow"
    return ask(
        bench,
        Question(
            job=job,
            path=lambda step: f"{PATH}?metric=HeartRate&{between(span, MINUTE * step)}{rest}",
            form="arrow",
            columns=rows_with_values,
            statement="series",
            parameters={"start": span[0], "end": span[1], "width": MINUTE * 1_000_000},
            peers=["duckdb native", "duckdb file", "polars", "clickhouse", "datafusion", "fastapi"],
            data_type="HeartRate",
            record=BEAT | {"start_date": "2024-03-05T12:00:01Z", "end_date": "2024-03-05T12:00:01Z"},
            gate=gate,
            mark=mark,
            others=others,
        ),
    )


def series_1d(bench):
    return series(bench, "series-1d", DAY, Mark("fastapi", 0.4), Limit(0.5))


def series_30d(bench):
    return series(bench, "series-30d", MONTH, Mark("best", 0.15), Limit(1))


def series_1y(bench):
    return series(bench, "series-1y", YEAR, Mark("duckdb file", 0.1), Limit(20))


def group_1y(bench):
    """VictoriaMetrics is not asked: amounts that last, and two sources of the same, are beyond it."""
    rest = "&samprate=3600&output=arrow" + "".join(f"&metrics={metric}" for metric in METRICS)
    return ask(
        bench,
        Question(
            job="group-1y",
            path=lambda step: f"/data/v0/time_series_grouped?{between(YEAR, step * QUARTER)}{rest}",
            form="arrow",
            columns=rows_with_values,
            statement="group",
            parameters={"start": YEAR[0], "end": YEAR[1]},
            peers=["duckdb native", "fastapi"],
            data_type="HeartRate",
            record=BEAT | {"start_date": "2024-06-05T12:00:01Z", "end_date": "2024-06-05T12:00:01Z"},
            gate=Mark("best", 0.5),
            mark=Limit(5),
        ),
    )
