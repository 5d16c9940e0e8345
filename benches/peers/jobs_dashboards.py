"""Many who look at their month at the same time: dashboards."""

from datetime import UTC, datetime

import pyarrow as pa

import answers
import dataset
from clients import visiting, wrk
from lines import Line, Mark
from measure import cpu_seconds, precise_cpu_seconds, wait_until_idle
from question import columns_of
from spans import THIRTY_DAYS

FUNCTIONS = ["avg", "min", "max"]
DAY = 86_400


def dashboards(bench):
    """Daily average, least and greatest heart rate of thirty days, of one person after the other, for 64 clients at once."""
    start, end = THIRTY_DAYS
    victoria = bench.victoria()
    functions = "".join(f"&function={function}" for function in FUNCTIONS)
    path = f"/data/v1alpha1/metric/HeartRate/agg/day?start_time={start}&end_time={end}{functions}"
    people = [dataset.person_id(number) for number in range(bench.people)]
    fastapi = lambda person: f"/ask/dashboard?person={person}&start={start}&end={end}"
    rollups = lambda person, cache=True: victoria.rollups(
        FUNCTIONS, "heart_rate", person, THIRTY_DAYS, DAY, cache
    )
    for person in (people[0], people[len(people) // 2], people[-1]):
        ours = by_day(answers.read(bench.almanac.get(person, path, keep=True)[2], "json"))
        theirs = answers.read(bench.fastapi.body(fastapi(person)), "json")
        for label, columns in (
            ("fastapi", numbered(theirs)),
            ("victoriametrics", victoria.windows(rollups(person), FUNCTIONS, DAY)),
        ):
            if differs := answers.difference(ours, columns):
                raise answers.Disagreement(
                    f"dashboards, almanac against {label}: {differs}\n  {person} asked almanac {path}"
                )
    systems = {
        "almanac": (bench.almanac, [(path, bench.almanac.headers(person)) for person in people]),
        "victoriametrics": (victoria, [(rollups(person), {}) for person in people]),
        # It keeps answers, as we keep partial results; a dashboard that is looked at again finds them.
        "victoriametrics, without its cache": (victoria, [(rollups(person, False), {}) for person in people]),
        "fastapi": (bench.fastapi, [(fastapi(person), {}) for person in people]),
    }
    seconds, seen = 3 if bench.quick else 10, {}
    first = first_visits(bench, people, path)
    for label, (system, requests) in systems.items():
        # Not counted: it also warms up.
        wrk(bench.directory, system.port, visiting(requests), 2)
    for _ in range(1 if bench.quick else 3):
        for label, (system, requests) in systems.items():
            cpu = cpu_seconds(system.pid)
            load = wrk(bench.directory, system.port, visiting(requests), seconds)
            seen.setdefault(label, []).append((load.rate * seconds / (cpu_seconds(system.pid) - cpu), load))
    lines, tails = [], []
    for label, runs in seen.items():
        rate, load = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
        ours = label == "almanac"
        note = f"{load.rate:,.0f} answers/s" + "".join(run.note() for _, run in runs)
        marks = (Mark("victoriametrics", 5), Mark("victoriametrics", 15)) if ours else (None, None)
        lines.append(Line("dashboards", label, rate, "answers per CPU s", note, *marks, True))
        tails.append(
            Line(
                "dashboards p99",
                label,
                load.tail,
                "ms",
                "",
                None,
                Mark("victoriametrics", 0.33) if ours else None,
            )
        )
    note = "each person once, one after the other"
    lines.insert(
        1,
        Line(
            "dashboards",
            "almanac, first after a start",
            first,
            "answers per CPU s",
            note,
            Mark("victoriametrics", 5),
            Mark("victoriametrics", 15),
            True,
        ),
    )
    return lines + tails


def first_visits(bench, people, path):
    """Answers per CPU second when nobody has asked since the start."""
    bench.almanac.stop()
    bench.almanac.start()
    wait_until_idle(bench.almanac.pid, quiet=0.5, longest=10)
    cpu = precise_cpu_seconds(bench.almanac.pid)
    for person in people:
        bench.almanac.get(person, path)
    return len(people) / (precise_cpu_seconds(bench.almanac.pid) - cpu)


def by_day(table):
    return {"time": table["time"]} | columns_of(table.select(FUNCTIONS))


def numbered(table):
    """The same, where days are counted from 1970."""
    starts = pa.array(
        [datetime.fromtimestamp(day * DAY, UTC) for day in table["day"].to_pylist()],
        pa.timestamp("us", "UTC"),
    )
    return {"time": starts} | columns_of(table.select(FUNCTIONS))
