"""What the peers are asked about, loaded into each of the libraries; and the same into Almanac, over HTTP."""

import sqlite3
from contextlib import closing

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
from chdb import session

import dataset
import jobs_import
from measure import wait_until_idle

KINDS = ["HeartRate", "StepCount", "SleepStage"]  # of the many, as dataset.small_person makes them


def peers(bench):
    if bench.loaded("peers"):
        return
    file = bench.directory / "heart.parquet"
    parquet.write_table(bench.heart_table(), file, compression="zstd", row_group_size=131_072)
    with duckdb.connect(f"{bench.directory}/peers.duckdb") as database:
        columns = "start_date, end_date, value, unit, source_properties, device_properties"
        heart = f"SELECT uuid::UUID AS uuid, {columns} FROM read_parquet('{file}')"
        database.execute(f"CREATE TABLE heart AS {heart}")
        others(bench, database)
        people(bench, database)
    places(bench)
    clickhouse(bench, file)


def others(bench, database):
    """DuckDB's tables of what the main person has besides heart rates: a table for what is asked for
    together, in the order of time."""
    energy = pa.concat_tables(
        bench.of_type(name).table().append_column("data_type", pa.array([name] * len(bench.of_type(name))))
        for name in ("ActiveCaloriesBurned", "BasalCaloriesBurned")
    )
    # Which of the sources is the better one is known when the table is made.
    rank = "(source_properties.productType NOT LIKE 'Watch%')::INTEGER AS rank"
    for name, table, columns in (
        ("steps", bench.of_type("StepCount").table(), f"start_date, end_date, value, {rank}"),
        ("energy", energy, "start_date, end_date, value, data_type"),
        ("oxygen", bench.of_type("BloodOxygenSaturation").table(), "start_date, end_date, value"),
        ("sleep", bench.of_type("SleepStage").table(), "start_date, end_date, value"),
        ("places", bench.of_type("PlatformLocationUpdate").table(), "time, latitude, longitude, accuracy"),
    ):
        database.register("made", table)
        rows = f"SELECT uuid::UUID AS uuid, {columns} FROM made ORDER BY {columns.split(',')[0]}"
        database.execute(f"CREATE TABLE {name} AS {rows}")
        database.unregister("made")


def people(bench, database):
    tables = [
        series.table()
        .select(["uuid", "start_date", "end_date", "value"])
        .append_column("person", pa.array([dataset.person_id(number)] * len(series)))
        .append_column("data_type", pa.array([kind] * len(series)))
        for number in range(bench.people)
        for kind, series in zip(KINDS, dataset.small_person(number))
    ]
    database.register("everything", pa.concat_tables(tables))
    rows = "SELECT * FROM everything ORDER BY person, data_type, start_date"
    database.execute(f"CREATE TABLE people AS {rows}")
    database.unregister("everything")


def places(bench):
    """For SQLite."""
    names = ("latitude", "longitude", "accuracy")
    with closing(sqlite3.connect(bench.directory / "peers.sqlite")) as lookup, lookup:
        declared = ", ".join(f"{name} REAL" for name in names)
        lookup.execute(f"CREATE TABLE places (uuid TEXT, time INTEGER, {declared})")
        table = bench.of_type("PlatformLocationUpdate").table()
        columns = [table["uuid"], table["time"].cast(pa.int64()), *(table[name] for name in names)]
        rows = zip(*(column.to_pylist() for column in columns))
        lookup.executemany("INSERT INTO places VALUES (?, ?, ?, ?, ?)", rows)
        lookup.execute("CREATE INDEX places_by_time ON places (time)")


def clickhouse(bench, file):
    time = "DateTime64(6, 'UTC')"
    texts = lambda properties: f"Tuple({', '.join(f'{name} String' for name in properties)})"
    columns = {
        "uuid": "UUID",
        "start_date": time,
        "end_date": time,
        "value": "Float64",
        "unit": "LowCardinality(String)",
        "source_properties": texts(dataset.SOURCE),
        "device_properties": texts(dataset.DEVICE),
    }
    database = session.Session(f"{bench.directory}/chdb")
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    database.query(f"CREATE TABLE heart ({declared}) ENGINE = MergeTree ORDER BY start_date")
    rest = ", ".join(list(columns)[1:])
    database.query(f"INSERT INTO heart SELECT toUUID(uuid), {rest} FROM file('{file}', Parquet)")
    database.close()


def almanac(bench):
    """The lines of the import, if there was one."""
    if bench.loaded("almanac"):
        return []
    bench.almanac.create(dataset.PERSON)
    lines = jobs_import.one_person(bench)
    for number in range(bench.people):
        for series in dataset.small_person(number):
            for _, body in series.bodies(100_000):
                bench.almanac.post(dataset.person_id(number), series.data_type, body)
    wait_until_idle(bench.almanac.pid, quiet=3.0, longest=20 if bench.quick else 180)
    return lines
