"""The jobs: what each asks of whom, and what must be equal before anything is timed. Each returns lines for the report."""

import io
import re
import resource
import subprocess
import time
from dataclasses import dataclass

import pyarrow as pa

import dataset
from almanac import JSONL
from libraries import Library
from measure import alternate, cpu_seconds, peak_megabytes, reset_peak, wait_until_idle
from servers import FastApi, InfluxDB, Postgres, VictoriaMetrics

MAIN = dataset.PERSON
DAY = ("2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z")
YEAR = ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z")


@dataclass
class Mark:
    """Ours divided by the named peer's (`best` for the best of all); to be at most (or, for throughput, at least) this."""

    peer: str
    ratio: float


@dataclass
class Line:
    job: str
    system: str
    figure: float
    unit: str
    note: str = ""
    gate: Mark | None = None
    stretch: Mark | None = None
    more_is_better: bool = False


def samples(span, output):
    return f"/data/v0/{MAIN}/metric_samples?metric=HeartRate&start_time={span[0]}&end_time={span[1]}&output={output}"


def cost_lines(job, costs, gate=None, stretch=None):
    lines = []
    for label, cost in costs.items():
        note = f"wall {cost.wall * 1000:.1f} ms, peak {cost.peak:.0f} MB"
        if cost.size:
            note += f", {cost.size / 1e6:.1f} MB"
        if cost.first_byte is not None:
            note += f", first byte {cost.first_byte * 1000:.1f} ms"
        ours = label == "almanac"
        lines.append(Line(job, label, cost.cpu * 1000, "CPU ms", note, gate if ours else None, stretch if ours else None))
    return lines


def must_be_equal(job, answers):
    """`answers`: system -> what `dataset.answer_of` says, or whatever the job compares."""
    first, *others = answers.items()
    for label, answer in others:
        if answer != first[1]:
            raise SystemExit(f"{job}: {label} answers {answer}, {first[0]} answers {first[1]}")


def our_table(bench, span, output):
    _, _, body = bench.almanac.get(MAIN, samples(span, output), keep=True)
    if output == "arrow":
        return pa.ipc.open_file(body).read_all()
    import duckdb

    path = bench.directory / f"answer.{output}"
    path.write_bytes(body)
    read = f"read_csv('{path}')" if output == "csv" else f"read_json('{path}', format = 'newline_delimited')"
    columns = "uuid::VARCHAR AS uuid, start_date::TIMESTAMPTZ AS start_date, value::DOUBLE AS value"
    table = duckdb.sql(f"SELECT {columns} FROM {read}").to_arrow_table()
    path.unlink()
    return table


def raw(bench, job, span, form, peers, gate, stretch):
    library = bench.libraries["duckdb native"]
    must_be_equal(job, {"almanac": dataset.answer_of(our_table(bench, span, form)), "DuckDB": tuple(library.ask("answer", start=span[0], end=span[1]))})
    systems = {"almanac": (bench.almanac.pid, lambda: bench.almanac.get(MAIN, samples(span, form)))}
    for name, wide in peers:
        if name == "fastapi":
            path = f"/samples?start={span[0]}&end={span[1]}&output={form}"
            systems["fastapi"] = (bench.fastapi.pid, lambda path=path: bench.fastapi.get(path))
        else:
            peer = bench.libraries[name]
            systems[name + (", our columns" if wide else "")] = (peer.pid, lambda peer=peer, wide=wide: peer.raw(form, *span, wide=wide))
    return cost_lines(job, alternate(systems, bench.rounds, bench.budget), gate, stretch)


def raw_1d(bench):
    peers = [("duckdb native", False), ("duckdb native", True), ("duckdb file", False), ("polars", False), ("fastapi", False)]
    return raw(bench, "raw-1d", DAY, "arrow", peers, Mark("fastapi", 0.7), Mark("duckdb native", 0.5))


def raw_1y(bench):
    everybody = [("duckdb native", False), ("duckdb native", True), ("duckdb file", False), ("polars", False), ("clickhouse", False), ("clickhouse", True)]
    lines = raw(bench, "raw-1y arrow", YEAR, "arrow", [*everybody, ("fastapi", False)], Mark("best", 0.8), Mark("best", 0.5))
    lines += raw(bench, "raw-1y csv", YEAR, "csv", [*everybody, ("fastapi", False)], Mark("best", 0.6), Mark("best", 0.4))
    lines += raw(bench, "raw-1y ndjson", YEAR, "ndjson", everybody, Mark("best", 0.5), Mark("best", 0.35))
    return lines


def people(bench):
    import json

    person = dataset.person_id(bench.people // 2)
    path = "/data/v1alpha1/data_available?start_time=2020-01-01T00:00:00Z&end_time=2030-01-01T00:00:00Z"
    _, _, body = bench.almanac.get(person, path, keep=True)
    print("  data_available answers", body[:200])
    library = bench.libraries["duckdb native"]
    must_be_equal("people", {"almanac": sorted(names_in(json.loads(body))), "DuckDB": sorted(name for name, _ in library.ask("types", person=person))})
    systems = {
        "almanac": (bench.almanac.pid, lambda: bench.almanac.get(person, path)),
        "duckdb native": (library.pid, lambda: (len(library.ask("types", person=person)), None)),
        "fastapi": (bench.fastapi.pid, lambda: bench.fastapi.get(f"/types?person={person}")),
    }
    costs = alternate(systems, bench.rounds, bench.budget)
    lines = cost_lines("people", costs, Mark("fastapi", 0.2))
    lines[0].note += "; stretch: 0.3 ms at any number of people"
    return lines


def names_in(available):
    """The types of a data_available answer: a list of objects keyed by data type."""
    if isinstance(available, dict):
        return list(available)
    return [item["data_type"] if "data_type" in item else next(iter(item)) for item in available]


WRK = """
local thread_number = 0
function setup(thread) thread:set("id", thread_number); thread_number = thread_number + 1 end
local count = 0
function request()
   count = count + 1
   return wrk.format("POST", "%(path)s", %(headers)s, string.format(%(body)s))
end
"""


def wrk(bench, port, path, headers, body, seconds):
    """(answers a second, p99 in ms, answers that were not 2xx) with 64 connections."""
    script = bench.directory / "post.lua"
    table = "{" + ", ".join(f'["{name}"] = "{value}"' for name, value in headers.items()) + "}"
    script.write_text(WRK % {"path": path, "headers": table, "body": body})
    command = ["wrk", "-t2", "-c64", f"-d{seconds}s", "--latency", "-s", script, f"http://127.0.0.1:{port}"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out).groups()
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    failed = re.search(r"Socket errors: .*", out)
    return rate, float(number) * {"us": 1e-3, "ms": 1, "s": 1000}[unit], int(bad[1]) if bad else 0, failed[0] if failed else ""


def post_1(bench):
    """Durable single records, 64 connections. The client takes its share of the two cores from everybody alike."""
    # A distinct id, or time, for each request: seconds of the run, thread, ordinal.
    stamp = int(time.time())
    record = (
        f"'{{\"uuid\":\"{stamp:08x}-0000-4000-8%03x-%012x\",\"start_date\":\"2024-02-01T00:00:00Z\",\"end_date\":\"2024-02-01T00:00:00Z\",\"value\":61,\"unit\":\"bpm\"}}', id, count"
    )
    point = f"'heart_rate,person=p%d value=61 {stamp}%09d', id, count"
    headers = bench.almanac.headers(dataset.person_id(900_001)) | {"Content-Type": "application/json"}
    influx, postgres = InfluxDB(bench.directory, bench.programs).start(), Postgres(bench.directory).start()
    postgres.sql("CREATE TABLE IF NOT EXISTS single (id uuid PRIMARY KEY, person uuid, start_date timestamptz, value double precision, unit text)")
    insert = bench.directory / "insert.sql"
    insert.write_text("INSERT INTO single VALUES (gen_random_uuid(), '5a3d1e00-0000-4000-8000-000000000001', now(), 61, 'bpm');\n")
    seconds = 3 if bench.quick else 10

    def ask_almanac():
        return wrk(bench, bench.almanac.port, "/ingest/v1/record/HeartRate", headers, record.replace("%03x", "%03x"), seconds)

    def ask_influx():
        return wrk(bench, influx.port, "/write?db=bench&precision=us", {}, point, seconds)

    def ask_postgres():
        program = postgres.programs / "pgbench"
        command = [program, "-n", "-c", "64", "-j", "2", "-T", str(seconds), "-f", insert, "-l", "--log-prefix", bench.directory / "pgbench", postgres.url()]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        latencies = []
        for log in bench.directory.glob("pgbench.*"):
            latencies += [int(line.split()[2]) for line in log.read_text().splitlines()]
            log.unlink()
        return float(re.search(r"tps = ([\d.]+)", out)[1]), sorted(latencies)[len(latencies) * 99 // 100] / 1000, 0, ""

    lines, seen = [], {}
    systems = {"almanac": (bench.almanac.pid, ask_almanac), "influxdb": (influx.pid, ask_influx), "postgres": (postgres.pid, ask_postgres)}
    for _ in range(1 if bench.quick else 3):
        for label, (pid, ask) in systems.items():
            cpu = cpu_seconds(pid)
            rate, tail, bad, failed = ask()
            if label == "postgres":
                postgres.backends_gone()
            seen.setdefault(label, []).append((rate, tail, (cpu_seconds(pid) - cpu) / (rate * seconds) * 1e6, bad, failed))
    for label, runs in seen.items():
        rate, tail, cpu, _, _ = sorted(runs)[len(runs) // 2]
        bad = sum(run[3] for run in runs)
        note = f"p99 {tail:.1f} ms, {cpu:.0f} CPU us each" + (f", {bad} NOT 2xx" if bad else "") + "".join(f", {run[4]}" for run in runs if run[4])
        ours = label == "almanac"
        lines.append(Line("post-1", label, rate, "records/s", note, Mark("influxdb", 2) if ours else None, Mark("influxdb", 4) if ours else None, True))
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
        points.append("".join(f"heart_rate,person=batch,unit=bpm value={value:g} {at}\n" for at, value in zip(series.starts[part].tolist(), series.values[part].tolist())).encode())
    texts = [row["uuid"] for row in series.table().select(["uuid"]).to_pylist()]
    csv = ["".join(f"{texts[at]},{dataset.PERSON},{starts},{series.values[at]:g},bpm\n" for at, starts in zip(range(begin, begin + 10_000), dataset.texts_of(series.starts[begin : begin + 10_000]))).encode() for begin in range(0, len(series), 10_000)]
    fresh = dataset.person_id(900_002)
    influx, postgres = InfluxDB(bench.directory, bench.programs).start(), Postgres(bench.directory).start()
    postgres.sql("CREATE TABLE IF NOT EXISTS batch (id uuid PRIMARY KEY, person uuid, start_date timestamptz, value double precision, unit text); TRUNCATE batch")
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
        lines.append(Line("post-batch", label, len(series) / spent[label], "rows per CPU s", note, Mark("influxdb", 3) if ours else None, Mark("influxdb", 5) if ours else None, True))
    # And into a partition that already holds millions, where ids have to be looked for.
    more = [body for _, body in dataset.heart_rate(random, 60_000).bodies(10_000)]
    cpu = cpu_seconds(bench.almanac.pid)
    for body in more:
        bench.almanac.post(MAIN, "HeartRate", body)
    figure = 60_000 / max(cpu_seconds(bench.almanac.pid) - cpu, 1e-9)
    lines.append(Line("post-batch", "almanac, into the large partition", figure, "rows per CPU s", "", None, None, True))
    influx.stop()
    postgres.stop()
    return lines


def cold(bench):
    """Start of the process to its first answer (a day of samples), everything stored and the system's page cache warm."""
    victoria, postgres = VictoriaMetrics(bench.directory, bench.programs), Postgres(bench.directory)
    heart = bench.person[0]
    victoria.start()
    if not bench.loaded("victoria"):
        victoria.load("heart_rate", (heart.starts // 1000).tolist(), heart.values.tolist())
    victoria.stop()
    postgres.start()
    if not bench.loaded("postgres"):
        postgres.sql("CREATE TABLE heart (id uuid, start_date timestamptz, value double precision)")
        path = bench.directory / "heart.csv"
        import pyarrow.csv

        table = bench.heart_table().select(["uuid", "start_date", "value"])
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(include_header=False))
        with open(path, "rb") as file:
            postgres.sql("COPY heart FROM STDIN (FORMAT csv)", stdin=file)
        postgres.sql("CREATE INDEX ON heart (start_date)")
        path.unlink()
    postgres.stop()

    def start_almanac():
        bench.almanac.start()
        bench.almanac.get(MAIN, samples(DAY, "arrow"))

    def start_victoria():
        victoria.start()
        victoria.get("/api/v1/query_range?query=avg_over_time(heart_rate[60s])&start=1709596800&end=1709683200&step=60")

    def start_postgres():
        postgres.start()
        postgres.sql(f"SELECT id, start_date, value FROM heart WHERE start_date >= '{DAY[0]}' AND start_date < '{DAY[1]}'")

    def start_fastapi():
        bench.fastapi.start()
        bench.fastapi.get(f"/samples?start={DAY[0]}&end={DAY[1]}")

    systems = {
        "almanac": (start_almanac, bench.almanac.stop),
        "victoriametrics": (start_victoria, victoria.stop),
        "postgres": (start_postgres, postgres.stop),
        "fastapi": (start_fastapi, bench.fastapi.stop),
    }
    bench.almanac.stop()
    bench.fastapi.stop()
    walls = {label: [] for label in systems}
    for _ in range(3 if bench.quick else 7):
        for label, (start, stop) in systems.items():
            begin = time.monotonic()
            start()
            walls[label].append(time.monotonic() - begin)
            stop()
    bench.almanac.start()
    bench.fastapi.start()
    lines = []
    for label, seen in walls.items():
        ours = label == "almanac"
        gate, stretch = (Mark("victoriametrics", 0.5), None) if ours else (None, None)
        note = "stretch: 100 ms" if ours else ""
        lines.append(Line("cold", label, sorted(seen)[len(seen) // 2] * 1000, "ms to the first answer", note, gate, stretch))
    return lines


JOBS = {"raw-1d": raw_1d, "raw-1y": raw_1y, "people": people, "post-1": post_1, "post-batch": post_batch, "cold": cold}
