"""Records as they were sent: raw-1d, raw-1y; and what there is of whom: people."""

import json

import pyarrow as pa

import dataset
from answers import must_be_equal
from lines import Mark, cost_lines
from measure import alternate
from spans import DAY, MAIN, YEAR


def samples(span, output):
    return f"/data/v0/{MAIN}/metric_samples?metric=HeartRate&start_time={span[0]}&end_time={span[1]}&output={output}"


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
    must_be_equal(
        job,
        {
            "almanac": dataset.answer_of(our_table(bench, span, form)),
            "DuckDB": tuple(library.ask("digest", start=span[0], end=span[1])),
        },
    )
    systems = {"almanac": (bench.almanac.pid, lambda: bench.almanac.get(MAIN, samples(span, form)))}
    for name, wide in peers:
        if name == "fastapi":
            path = f"/samples?start={span[0]}&end={span[1]}&output={form}"
            systems["fastapi"] = (bench.fastapi.pid, lambda path=path: bench.fastapi.get(path))
        else:
            peer = bench.libraries[name]
            systems[name + (", our columns" if wide else "")] = (
                peer.pid,
                lambda peer=peer, wide=wide: peer.raw(form, *span, wide=wide),
            )
    return cost_lines(job, alternate(systems, bench.rounds, bench.budget), gate, stretch)


def raw_1d(bench):
    peers = [
        ("duckdb native", False),
        ("duckdb native", True),
        ("duckdb file", False),
        ("polars", False),
        ("fastapi", False),
    ]
    return raw(bench, "raw-1d", DAY, "arrow", peers, Mark("fastapi", 0.7), Mark("duckdb native", 0.5))


def raw_1y(bench):
    everybody = [
        ("duckdb native", False),
        ("duckdb native", True),
        ("duckdb file", False),
        ("polars", False),
        ("clickhouse", False),
        ("clickhouse", True),
    ]
    lines = raw(
        bench,
        "raw-1y arrow",
        YEAR,
        "arrow",
        [*everybody, ("fastapi", False)],
        Mark("best", 0.8),
        Mark("best", 0.5),
    )
    lines += raw(
        bench,
        "raw-1y csv",
        YEAR,
        "csv",
        [*everybody, ("fastapi", False)],
        Mark("best", 0.6),
        Mark("best", 0.4),
    )
    lines += raw(bench, "raw-1y ndjson", YEAR, "ndjson", everybody, Mark("best", 0.5), Mark("best", 0.35))
    return lines


def people(bench):
    person = dataset.person_id(bench.people // 2)
    path = "/data/v1alpha1/data_available?start_time=2020-01-01T00:00:00Z&end_time=2030-01-01T00:00:00Z"
    _, _, body = bench.almanac.get(person, path, keep=True)
    print("  data_available answers", body[:200])
    library = bench.libraries["duckdb native"]
    must_be_equal(
        "people",
        {
            "almanac": sorted(names_in(json.loads(body))),
            "DuckDB": sorted(name for name, _ in library.ask("types", person=person)),
        },
    )
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
