"""What is stored durably: post-1, post-batch."""

import re
import subprocess
import time

import dataset
from clients import Load, posting, wrk
from lines import Line, Mark
from measure import cpu_seconds, peak_megabytes, reset_peak
from servers import InfluxDB, Postgres
from spans import MAIN


def post_1(bench):
    """Durable single records, 64 connections."""
    # A distinct id, or time, for each request: seconds of the run, thread, ordinal.
    stamp = int(time.time())
    record = f'\'{{"uuid":"{stamp:08x}-0000-4000-8%03x-%012x","start_date":"2024-02-01T00:00:00Z","end_date":"2024-02-01T00:00:00Z","value":61,"unit":"bpm"}}\', id, count'
    point = f"'heart_rate,person=p%d value=61 {stamp}%09d', id, count"
    headers = bench.almanac.headers(dataset.person_id(900_001)) | {"Content-Type": "application/json"}
    influx, postgres = InfluxDB(bench.directory, bench.programs).start(), Postgres(bench.directory).start()
    postgres.sql(
        "CREATE TABLE IF NOT EXISTS single (id uuid PRIMARY KEY, person uuid, start_date timestamptz, value double precision, unit text)"
    )
    insert = bench.directory / "insert.sql"
    insert.write_text(
        "INSERT INTO single VALUES (gen_random_uuid(), '5a3d1e00-0000-4000-8000-000000000001', now(), 61, 'bpm');\n"
    )
    seconds = 3 if bench.quick else 10

    def ask_almanac():
        return wrk(
            bench.directory,
            bench.almanac.port,
            posting("/ingest/v1/record/HeartRate", headers, record),
            seconds,
        )

    def ask_influx():
        return wrk(bench.directory, influx.port, posting("/write?db=bench&precision=us", {}, point), seconds)

    def ask_postgres():
        program = postgres.programs / "pgbench"
        command = [
            program,
            "-n",
            "-c",
            "64",
            "-j",
            "2",
            "-T",
            str(seconds),
            "-f",
            insert,
            "-l",
            "--log-prefix",
            bench.directory / "pgbench",
            postgres.url(),
        ]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        latencies = []
        for log in bench.directory.glob("pgbench.*"):
            latencies += [int(line.split()[2]) for line in log.read_text().splitlines()]
            log.unlink()
        return Load(
            float(re.search(r"tps = ([\d.]+)", out)[1]), sorted(latencies)[len(latencies) * 99 // 100] / 1000
        )

    lines, seen = [], {}
    systems = {
        "almanac": (bench.almanac.pid, ask_almanac),
        "influxdb": (influx.pid, ask_influx),
        "postgres": (postgres.pid, ask_postgres),
    }
    for _ in range(1 if bench.quick else 3):
        for label, (pid, ask) in systems.items():
            cpu = cpu_seconds(pid)
            load = ask()
            if label == "postgres":
                postgres.backends_gone()
            seen.setdefault(label, []).append((load, (cpu_seconds(pid) - cpu) / (load.rate * seconds) * 1e6))
    for label, runs in seen.items():
        load, cpu = sorted(runs)[len(runs) // 2]
        note = f"p99 {load.tail:.1f} ms, {cpu:.0f} CPU us each" + "".join(run.note() for run, _ in runs)
        ours = label == "almanac"
        lines.append(
            Line(
                "post-1",
                label,
                load.rate,
                "records/s",
                note,
                Mark("influxdb", 2) if ours else None,
                Mark("influxdb", 4) if ours else None,
                True,
            )
        )
    influx.stop()
    postgres.stop()
    return lines


def post_batch(bench):
    """Durable bodies of 10,000 records with ids: rows per CPU second of the process that stores them."""
    bodies = 6 if bench.quick else 60
    random = __import__("numpy").random.default_rng(int(time.time()))
    series = dataset.heart_rate(random, bodies * 10_000)
    packed = [body for _, body in series.bodies(10_000)]
    points = []
    for begin in range(0, len(series), 10_000):
        part = slice(begin, begin + 10_000)
        points.append(
            "".join(
                f"heart_rate,person=batch,unit=bpm value={value:g} {at}\n"
                for at, value in zip(series.starts[part].tolist(), series.values[part].tolist())
            ).encode()
        )
    texts = [row["uuid"] for row in series.table().select(["uuid"]).to_pylist()]
    csv = [
        "".join(
            f"{texts[at]},{dataset.PERSON},{starts},{series.values[at]:g},bpm\n"
            for at, starts in zip(
                range(begin, begin + 10_000), dataset.texts_of(series.starts[begin : begin + 10_000])
            )
        ).encode()
        for begin in range(0, len(series), 10_000)
    ]
    fresh = dataset.person_id(900_002)
    influx, postgres = InfluxDB(bench.directory, bench.programs).start(), Postgres(bench.directory).start()
    postgres.sql(
        "CREATE TABLE IF NOT EXISTS batch (id uuid PRIMARY KEY, person uuid, start_date timestamptz, value double precision, unit text); TRUNCATE batch"
    )
    copy = "COPY batch FROM STDIN (FORMAT csv)"
    systems = {
        "almanac": (bench.almanac.pid, lambda number: bench.almanac.post(fresh, "HeartRate", packed[number])),
        "influxdb": (influx.pid, lambda number: influx.write(points[number])),
        "postgres COPY": (postgres.pid, lambda number: postgres.sql(copy, input=csv[number])),
    }
    lines = []
    spent = {label: 0.0 for label in systems}
    taken = {label: 0.0 for label in systems}
    for pid, _ in systems.values():
        reset_peak(pid)
    for begin in range(0, bodies, 6):
        for label, (pid, send) in systems.items():
            cpu, wall = cpu_seconds(pid), time.monotonic()
            for number in range(begin, begin + 6):
                send(number)
            taken[label] += time.monotonic() - wall
            if label == "postgres COPY":
                postgres.backends_gone()
            spent[label] += cpu_seconds(pid) - cpu
    for label, (pid, _) in systems.items():
        ours = label == "almanac"
        note = f"{len(series) / taken[label] / 1000:.0f} k rows/s wall, peak {peak_megabytes(pid):.0f} MB"
        lines.append(
            Line(
                "post-batch",
                label,
                len(series) / spent[label],
                "rows per CPU s",
                note,
                Mark("influxdb", 3) if ours else None,
                Mark("influxdb", 5) if ours else None,
                True,
            )
        )
    # And into a partition that already holds millions, where ids have to be looked for.
    more = [body for _, body in dataset.heart_rate(random, 60_000).bodies(10_000)]
    cpu = cpu_seconds(bench.almanac.pid)
    for body in more:
        bench.almanac.post(MAIN, "HeartRate", body)
    figure = 60_000 / max(cpu_seconds(bench.almanac.pid) - cpu, 1e-9)
    lines.append(
        Line(
            "post-batch", "almanac, into the large partition", figure, "rows per CPU s", "", None, None, True
        )
    )
    influx.stop()
    postgres.stop()
    return lines
