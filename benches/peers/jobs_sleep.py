"""Nights: sleep-2y, once as stages and once as what each stage lasted."""

import pyarrow.compute as pc

from lines import Limit, Mark
from question import Question, ask, columns_of
from spans import MAIN, QUARTER, TWO_YEARS, between


def stages(table):
    return columns_of(table.select(["cycle", "start_time", "end_time", "sleep_stage", "duration_ms"]))


def aggregates(table):
    day = pc.strftime(table["period_start_time"], "%Y-%m-%d")
    rest = ["value", "sum_ms", "avg_ms", "min_ms", "max_ms", "min_start_time", "max_end_time", "cycles"]
    return {"day": day} | columns_of(table.select(rest))


def sleep_2y(bench):
    functions = "&agg_functions=sum&agg_functions=avg&agg_functions=min&agg_functions=max"
    lines = []
    for kind, options, columns in (
        ("sleep_stages", "", stages),
        ("sleep_agg", f"&tz=America/New_York{functions}", aggregates),
    ):
        path = f"/data/v0/{MAIN}/{kind}?output=arrow{options}"
        lines += ask(
            bench,
            Question(
                job=f"sleep-2y {kind.removeprefix('sleep_')}",
                path=lambda step, path=path: f"{path}&{between(TWO_YEARS, step * QUARTER)}",
                form="arrow",
                columns=columns,
                statement=kind,
                parameters={"start": TWO_YEARS[0], "end": TWO_YEARS[1]},
                peers=["duckdb native", "fastapi"],
                data_type="SleepStage",
                record={
                    "start_date": "2024-06-05T01:00:00Z",
                    "end_date": "2024-06-05T01:10:00Z",
                    "value": 4,
                    "unit": "stage",
                },
                gate=Mark("duckdb native", 0.25),
                mark=Limit(6),
            ),
        )
    return lines
