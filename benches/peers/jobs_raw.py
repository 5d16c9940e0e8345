"""Records as they were sent: raw-1d, raw-1y; and what there is of whom: people."""

import json

import pyarrow as pa

import circumstances
import dataset
from answers import must_be_equal
from circumstances import Asked
from lines import Limit, Mark
from measure import alternate
from spans import DAY, MAIN, YEAR, between, later


def samples(span, output):
    return f"/data/v0/{MAIN}/metric_samples?metric=HeartRate&{between(span)}&output={output}"


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


def raw(bench, span, form, peers, asked):
    library = bench.libraries["duckdb native"]
    digest = library.ask("digest", start=span[0], end=span[1])
    must_be_equal(
        asked.job, {"almanac": dataset.answer_of(our_table(bench, span, form)), "DuckDB": tuple(digest)}
    )
    systems = circumstances.systems(bench, asked)
    for name, wide in peers:
        if name == "fastapi":
            path = f"/samples?start={span[0]}&end={span[1]}&output={form}"
            systems["fastapi"] = (bench.fastapi.pid, lambda path=path: bench.fastapi.get(path))
        else:
            peer = bench.libraries[name]
            ask = lambda peer=peer, wide=wide: peer.raw(form, *span, wide=wide)
            systems[name + (", our columns" if wide else "")] = (peer.pid, ask)
    return circumstances.lines(bench, asked, alternate(systems, bench.rounds, bench.budget))


def asked_of(job, span, form, gate, mark, **more):
    return Asked(
        job=job,
        path=lambda step: samples(later(span, 7 * step), form),
        data_type="HeartRate",
        record={
            "start_date": "2024-03-05T12:00:01Z",
            "end_date": "2024-03-05T12:00:01Z",
            "value": 61,
            "unit": "bpm",
        },
        gate=gate,
        mark=mark,
        **more,
    )


def raw_1d(bench):
    peers = [
        ("duckdb native", False),
        ("duckdb native", True),
        ("duckdb file", False),
        ("polars", False),
        ("fastapi", False),
    ]
    return raw(bench, DAY, "arrow", peers, asked_of("raw-1d", DAY, "arrow", Mark("fastapi", 0.7), Limit(1.5)))


def raw_1y(bench):
    everybody = [
        ("duckdb native", False),
        ("duckdb native", True),
        ("duckdb file", False),
        ("polars", False),
        ("clickhouse", False),
        ("clickhouse", True),
    ]
    lines = []
    for form, peers, gate, mark in (
        ("arrow", [*everybody, ("fastapi", False)], 0.8, 350),
        ("csv", [*everybody, ("fastapi", False)], 0.6, 1000),
        ("ndjson", everybody, 0.5, 1200),
    ):
        asked = asked_of(f"raw-1y {form}", YEAR, form, Mark("best", gate), Limit(mark), kept=False)
        lines += raw(bench, YEAR, form, peers, asked)
    return lines


def people(bench):
    person = dataset.person_id(bench.people // 2)
    path = lambda step: (
        f"/data/v1alpha1/data_available?{between(('2020-01-01T00:00:00Z', '2030-01-01T00:00:00Z'), step)}"
    )
    _, _, body = bench.almanac.get(person, path(0), keep=True)
    library = bench.libraries["duckdb native"]
    theirs = sorted(name for name, _ in library.ask("types", person=person))
    must_be_equal("people", {"almanac": sorted(names_in(json.loads(body))), "DuckDB": theirs})
    asked = asked_of("people", DAY, "", Mark("fastapi", 0.2), Limit(0.15), person=person)
    asked.path = path
    systems = circumstances.systems(bench, asked) | {
        "duckdb native": (library.pid, lambda: (len(library.ask("types", person=person)), None)),
        "fastapi": (bench.fastapi.pid, lambda: bench.fastapi.get(f"/types?person={person}")),
    }
    return circumstances.lines(bench, asked, alternate(systems, bench.rounds, bench.budget))


def names_in(available):
    """The types of a data_available answer: a list of objects keyed by data type."""
    if isinstance(available, dict):
        return list(available)
    return [item["data_type"] if "data_type" in item else next(iter(item)) for item in available]
