"""Many who look at their month at the same time: dashboards."""

import uuid
from datetime import UTC, datetime

import pyarrow as pa

import answers
import dataset
from clients import visiting, wrk
from lines import Line, Mark
from measure import cpu_seconds, precise_cpu_seconds, wait_until_idle
from question import columns_of
from spans import THIRTY_DAYS, between, later

FUNCTIONS = ["avg", "min", "max"]
DAY = 86_400
WRITTEN = "2023-01-05T12:00:01Z"


def dashboards(bench):
    """Daily average, least and greatest heart rate of thirty days, two questions of each person, for 64
    clients at once."""
    victoria = bench.victoria()
    people = [dataset.person_id(number) for number in range(bench.people)]
    asked = [(person, span) for span in (THIRTY_DAYS, later(THIRTY_DAYS, DAY)) for person in people]
    fastapi = lambda person, span: f"/ask/dashboard?person={person}&start={span[0]}&end={span[1]}"
    rollups = lambda person, span, cache=True: victoria.rollups(
        FUNCTIONS, "heart_rate", person, span, DAY, cache
    )
    for person in (people[0], people[len(people) // 2], people[-1]):
        ours = by_day(answers.read(bench.almanac.get(person, path(THIRTY_DAYS), keep=True)[2], "json"))
        theirs = answers.read(bench.fastapi.body(fastapi(person, THIRTY_DAYS)), "json")
        for label, columns in (
            ("fastapi", numbered(theirs)),
            ("victoriametrics", victoria.windows(rollups(person, THIRTY_DAYS), FUNCTIONS, DAY)),
        ):
            if differs := answers.difference(ours, columns):
                raise answers.Disagreement(
                    f"dashboards, almanac against {label}: {differs}\n  {person} asked"
                )
    systems = {
        "almanac": (bench.almanac, [(path(span), bench.almanac.headers(person)) for person, span in asked]),
        "victoriametrics": (victoria, [(rollups(*one), {}) for one in asked]),
        # It keeps answers, and so do we; a dashboard that is looked at again finds them.
        "victoriametrics, without its cache": (victoria, [(rollups(*one, False), {}) for one in asked]),
        "fastapi": (bench.fastapi, [(fastapi(*one), {}) for one in asked]),
    }
    first = line(
        "almanac, first after a start", first_visits(bench, people), "each person once, one after the other"
    )
    bench.afterwards.append(lambda: [line("almanac, after a write", *after_writes(bench, people[:200]))])
    seconds, seen = 3 if bench.quick else 10, {}
    for system, requests in systems.values():
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
        note = f"{load.rate:,.0f} answers/s" + "".join(run.note() for _, run in runs)
        lines.append(line(label, rate, note))
        mark = Mark("victoriametrics", 0.33) if label == "almanac" else None
        tails.append(Line("dashboards p99", label, load.tail, "ms", "", None, mark))
    return [lines[0], first, *lines[1:], *tails]


def path(span):
    functions = "".join(f"&function={function}" for function in FUNCTIONS)
    return f"/data/v1alpha1/metric/HeartRate/agg/day?{between(span)}{functions}"


def line(label, rate, note):
    mark = Mark("victoriametrics", 3) if label.startswith("almanac") else None
    return Line("dashboards", label, rate, "answers per CPU s", note, None, mark, True)


def first_visits(bench, people):
    """Answers per CPU second when nobody has asked since the start."""
    bench.almanac.stop()
    bench.almanac.start()
    wait_until_idle(bench.almanac.pid, quiet=0.5, longest=10)
    cpu = precise_cpu_seconds(bench.almanac.pid)
    for person in people:
        bench.almanac.get(person, path(THIRTY_DAYS))
    return len(people) / (precise_cpu_seconds(bench.almanac.pid) - cpu)


def after_writes(bench, people):
    """The same when each has just stored a record, without what storing it takes."""
    spent = 0.0
    for person in people:
        record = {
            "uuid": str(uuid.uuid4()),
            "start_date": WRITTEN,
            "end_date": WRITTEN,
            "value": 61,
            "unit": "bpm",
        }
        bench.almanac.post(person, "HeartRate", answers.json_line(record))
        cpu = precise_cpu_seconds(bench.almanac.pid)
        bench.almanac.get(person, path(THIRTY_DAYS))
        spent += precise_cpu_seconds(bench.almanac.pid) - cpu
        bench.almanac.delete(person, "HeartRate", [record["uuid"]])
    return len(people) / spent, f"{len(people)} persons once each, after a record each"


def by_day(table):
    return {"time": table["time"]} | columns_of(table.select(FUNCTIONS))


def numbered(table):
    """The same, where days are counted from 1970."""
    starts = pa.array(
        [datetime.fromtimestamp(day * DAY, UTC) for day in table["day"].to_pylist()],
        pa.timestamp("us", "UTC"),
    )
    return {"time": starts} | columns_of(table.select(FUNCTIONS))
