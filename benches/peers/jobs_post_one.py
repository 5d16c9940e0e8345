"""Single records, stored durably: post-1, for a person who has nothing and for one who has much."""

import itertools
import re
import subprocess
import time

import dataset
from clients import Load, posting, wrk
from lines import Limit, Line, Mark
from measure import cpu_seconds
from servers import InfluxDB, Postgres
from spans import MAIN

CONNECTIONS = (1, 16, 64)
# Each load has records of its own: a number for its ids, and times after all that was stored before.
LOADS = itertools.count(int(time.time()))
FIRST_TIME = 1_735_689_600  # 2025-01-01T00:00:00Z
TIMES_OF_LOAD = 50_000


def post_1(bench):
    with InfluxDB(bench.directory, bench.programs) as influx, Postgres(bench.directory) as postgres:
        return loads(bench, influx, postgres)


def loads(bench, influx, postgres):
    columns = "id uuid PRIMARY KEY, person uuid, start_date timestamptz, value double precision, unit text"
    postgres.sql(f"CREATE TABLE IF NOT EXISTS single ({columns})")
    seconds = 2 if bench.quick else 4
    lines = []
    for at, connections in enumerate(CONNECTIONS):
        fresh = dataset.person_id(900_001 + at)
        systems = {
            "almanac": (bench.almanac.pid, lambda: to_almanac(bench, fresh, seconds, connections)),
            "almanac, much stored": (
                bench.almanac.pid,
                lambda: to_almanac(bench, MAIN, seconds, connections),
            ),
            "influxdb": (influx.pid, lambda: to_influx(bench, influx, seconds, connections)),
            "postgres": (postgres.pid, lambda: to_postgres(bench, postgres, seconds, connections)),
        }
        lines += under_load(bench, systems, seconds, connections)
    return lines


def under_load(bench, systems, seconds, connections):
    seen = {}
    for _ in range(1 if bench.quick else 3):
        for label, (pid, ask) in systems.items():
            cpu = cpu_seconds(pid)
            load = ask()
            seen.setdefault(label, []).append((load, (cpu_seconds(pid) - cpu) / (load.rate * seconds) * 1e6))
    job = f"post-1, {connections} at once"
    rates, tails = [], []
    for label, runs in seen.items():
        load, cpu = sorted(runs)[len(runs) // 2]
        note = f"{cpu:.0f} CPU us each" + "".join(run.note() for run, _ in runs)
        ours = label.startswith("almanac")
        rate_mark, tail_mark = (Mark("influxdb", 2), Limit(25)) if ours else (None, None)
        rates.append(Line(job, label, load.rate, "records/s", note, None, rate_mark, True))
        tails.append(Line(f"{job}, p99", label, load.tail, "ms", "", None, tail_mark))
    return rates + tails


def to_almanac(bench, person, seconds, connections):
    """As a device sends them: each a second later than the one before."""
    number = next(LOADS)
    begin = FIRST_TIME + number % 200 * TIMES_OF_LOAD
    time_of = f"os.date('!%Y-%m-%dT%H:%M:%SZ', {begin} + count)"
    ends = '"start_date":"%s","end_date":"%s"'
    record = f'{{"uuid":"{number:08x}-0000-4000-8%03x-%012x",{ends},"value":61,"unit":"bpm"}}'
    headers = bench.almanac.headers(person) | {"Content-Type": "application/json"}
    script = posting("/ingest/v1/record/HeartRate", headers, f"'{record}', id, count, {time_of}, {time_of}")
    return wrk(bench.directory, bench.almanac.port, script, seconds, connections)


def to_influx(bench, influx, seconds, connections):
    """A value and a time of its own, in microseconds: no id, no end."""
    point = f"'heart_rate,person=p%d value=61 {170_000 + next(LOADS) % 9_999}%010d', id, count"
    script = posting("/write?db=bench&precision=us", {}, point)
    return wrk(bench.directory, influx.port, script, seconds, connections)


def to_postgres(bench, postgres, seconds, connections):
    insert = bench.directory / "insert.sql"
    row = f"gen_random_uuid(), '{MAIN}', now(), 61, 'bpm'"
    insert.write_text(f"INSERT INTO single VALUES ({row});\n")
    prefix = bench.directory / "pgbench"
    options = ["-n", "-c", str(connections), "-j", str(min(2, connections)), "-T", str(seconds)]
    command = [
        postgres.programs / "pgbench",
        *options,
        "-f",
        insert,
        "-l",
        "--log-prefix",
        prefix,
        postgres.url(),
    ]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    postgres.backends_gone()
    latencies = []
    for log in bench.directory.glob("pgbench.*"):
        latencies += [int(line.split()[2]) for line in log.read_text().splitlines()]
        log.unlink()
    rate = float(re.search(r"tps = ([\d.]+)", out)[1])
    return Load(rate, sorted(latencies)[len(latencies) * 99 // 100] / 1000)
