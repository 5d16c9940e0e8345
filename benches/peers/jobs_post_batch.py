"""Bodies of 10,000 records, stored durably, and what the process that stores them takes for a row:
post-batch.

Records have an id, a start, an end, a source and a device. InfluxDB gets what it needs for the same (id and
end as fields, unit, source and device as tags), and for comparison the value alone; it keeps no record apart
that has the time and the tags of another.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

import dataset
from lines import Limit, Line
from measure import Meter, peak_megabytes, reset_peak, wait_until_idle
from servers import InfluxDB, Postgres
from spans import MAIN

ROWS = 10_000
MARKS = {"new person": 1, "later": 1.5, "later, again": 2, "overlapping": 3}
# Later than all that post-1 stores.
LATER, LATER_DAYS = dataset.DAYS + 120, 30


@dataclass
class System:
    label: str
    pid: int
    send: Callable  # of a body
    bodies: list
    done: Callable = lambda: None  # waits until what was sent is counted


@dataclass
class Storing:
    """What a system took in one situation."""

    cpu: float = 0.0
    wall: float = 0.0
    upkeep: float = 0.0
    written: int = 0
    sent: int = 0
    rows: int = 0
    peak: float = 0.0
    refused: int = 0


def post_batch(bench):
    with InfluxDB(bench.directory, bench.programs) as influx, Postgres(bench.directory) as postgres:
        return situations(bench, influx, postgres)


def situations(bench, influx, postgres):
    random = np.random.default_rng()
    lines, times = [], itertools.count()
    for number, (timed, at_once) in enumerate(itertools.product((True, False), (1, 4))):
        # As many at once as one after the other would take far longer than they tell.
        count = (6 if bench.quick else 12 if at_once > 1 else 30) * ROWS
        kind = f"{'UUIDv7' if timed else 'UUIDv4'}{', four at once' if at_once > 1 else ''}"
        fresh, later_day = dataset.person_id(900_100 + number), LATER + next(times) * LATER_DAYS
        # Ids are texts to the peers, whatever they are made of.
        others = partial(peers, bench, influx, postgres, at_once, number) if not timed else lambda *_: []
        series = dataset.beats_from(random, count, 0, dataset.DAYS, timed)
        for situation in ("new person", "new person, again"):
            run = [ours(bench, kind, fresh, series), *others(series, situation)]
            lines += measured(bench, situation, run, at_once)
        series = dataset.beats_from(random, count, later_day, LATER_DAYS, timed)
        for situation in ("later", "later, again"):
            lines += measured(bench, situation, [ours(bench, kind, MAIN, series)], at_once)
        series = dataset.beats_from(random, count, 0, dataset.DAYS, timed, dataset.PHONE)
        run = [ours(bench, kind, MAIN, series), *others(series, "overlapping")]
        lines += measured(bench, "overlapping", run, at_once)
    return lines


def ours(bench, kind, person, series):
    bodies = [body for _, body in series.bodies(ROWS)]
    return System(
        f"almanac, {kind}", bench.almanac.pid, partial(bench.almanac.post, person, "HeartRate"), bodies
    )


def peers(bench, influx, postgres, at_once, number, series, situation):
    kind = ", four at once" if at_once > 1 else ""
    found = [
        System(f"influxdb{kind}", influx.pid, influx.write, list(points(series, f"all{number}", whole=True))),
        System(
            f"influxdb, value only{kind}", influx.pid, influx.write, list(points(series, f"value{number}"))
        ),
    ]
    if situation == "new person":
        table = f"batch{number}"
        columns = (
            "id uuid PRIMARY KEY, start_date timestamptz, value double precision, unit text, source text"
        )
        postgres.sql(f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} ({columns})")
        send = lambda body: postgres.sql(f"COPY {table} FROM STDIN (FORMAT csv)", input=body)
        found.append(
            System(f"postgres COPY{kind}", postgres.pid, send, list(copied(series)), postgres.backends_gone)
        )
    return found


def parts(series):
    """The columns of each body: ids, starts and ends in microseconds, values."""
    texts = [row["uuid"] for row in series.table().select(["uuid"]).to_pylist()]
    for begin in range(0, len(series), ROWS):
        part = slice(begin, begin + ROWS)
        yield texts[part], series.starts[part], series.ends[part].tolist(), series.values[part].tolist()


def points(series, person, whole=False):
    source = series.sources[0]["productType"].replace(",", "\\,")
    tags = f"heart_rate,person={person},unit=bpm" + (f",source={source},device={source}" if whole else "")
    for ids, starts, ends, values in parts(series):
        rows = zip(ids, starts.tolist(), ends, values)
        if whole:
            text = "".join(
                f'{tags} value={value:g},end={end}i,id="{id}" {at}\n' for id, at, end, value in rows
            )
        else:
            text = "".join(f"{tags} value={value:g} {at}\n" for _, at, _, value in rows)
        yield text.encode()


def copied(series):
    source = series.sources[0]["productType"].replace(",", " ")
    for ids, starts, _, values in parts(series):
        rows = zip(ids, dataset.texts_of(starts), values)
        yield "".join(f"{id},{at},{value:g},bpm,{source}\n" for id, at, value in rows).encode()


def measured(bench, situation, systems, at_once):
    """They take turns, so that a busy moment of the machine hits all of them."""
    seen = {system.label: Storing() for system in systems}
    turn = max(6, at_once)
    refused = bench.almanac.refused
    for system in systems:
        reset_peak(system.pid)
    with ThreadPoolExecutor(at_once) as threads:
        for begin in range(0, len(systems[0].bodies), turn):
            for system in systems:
                store(system, system.bodies[begin : begin + turn], threads, seen[system.label])
    seen[systems[0].label].refused = bench.almanac.refused - refused
    for system in systems:
        settle(system, seen[system.label])
    return [line for system in systems for line in lines_of(situation, system, seen[system.label])]


def store(system, bodies, threads, storing):
    meter = Meter(system.pid)
    list(threads.map(system.send, bodies))
    system.done()
    storing.wall += meter.wall()
    storing.cpu += meter.cpu()
    storing.written += meter.written()
    storing.sent += sum(map(len, bodies))
    storing.rows += ROWS * len(bodies)
    storing.peak = max(storing.peak, peak_megabytes(system.pid))


def settle(system, storing):
    """What remains to be done is a part of it, and is told apart."""
    meter = Meter(system.pid)
    if system.label.startswith("almanac"):
        wait_until_idle(system.pid, quiet=6, longest=90)
    storing.upkeep = meter.cpu()
    storing.written += meter.written()


def lines_of(situation, system, storing):
    each = lambda seconds: seconds / storing.rows * 1e6
    amplification = storing.written / storing.sent
    is_ours = system.label.startswith("almanac")
    note = f"{storing.rows / storing.wall / 1000:.0f} k rows/s wall, peak {storing.peak:.0f} MB"
    if is_ours:
        note += f", upkeep afterwards {each(storing.upkeep):.2f}"
        note += f", {storing.refused} bodies sent again" if storing.refused else ""
    mark = Limit(MARKS[situation]) if is_ours and situation in MARKS else None
    job = f"post-batch, {situation}"
    lines = [Line(job, system.label, each(storing.cpu), "CPU us a row", note, None, mark)]
    if is_ours:
        mark = Limit(6) if situation == "overlapping" else None
        lines.append(
            Line(f"{job}, written", system.label, amplification, "bytes for each sent", "", None, mark)
        )
    return lines
