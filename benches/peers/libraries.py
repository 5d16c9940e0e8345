"""DuckDB, Polars, ClickHouse (chDB), DataFusion and SQLite as libraries: each in a process of its own that
answers questions from its standard input.

They answer in whatever form costs them least: DuckDB's Arrow table stays a table in memory, its csv goes to
/dev/null, and so on; no HTTP, no tokens. `wide` asks for the columns that Almanac answers, otherwise for
five: id, start, end, value, unit. `answer` puts a statement of sql/, or the same question in the library's
own words.
"""

import io
import json
import subprocess
import sys
import warnings

from statements import statement as statement_text

NARROW = "uuid, start_date, end_date, value, unit"
WIDE = (
    f"{NARROW}, NULL::BIGINT AS count, false AS has_undetermined_duration, NULL::VARCHAR AS extras, "
    "source_properties, device_properties"
)
# Days of hours: what is computed of each hour, and what of those.
PARTS = "sum(value) AS total, count(*) AS many, min(value) AS least, max(value) AS most"
WHOLES = "sum(total) AS sum, sum(total) / sum(many) AS avg, min(least) AS min, max(most) AS max"
TYPES = (
    "SELECT data_type, min(start_date)::VARCHAR, max(start_date)::VARCHAR, count(*) "
    "FROM people WHERE person = ? GROUP BY data_type"
)


def duckdb_select(columns, start, end):
    """Ids are stored as UUID and answered as text."""
    columns = columns.replace("uuid", "uuid::VARCHAR AS uuid", 1)
    within = f"start_date >= '{start}' AND start_date < '{end}'"
    return f"SELECT {columns} FROM heart WHERE {within} ORDER BY start_date"


def handed_over(table, keep):
    """The size of an answer in memory; the answer itself goes into the file `keep`."""
    import pyarrow as pa

    if keep:
        with pa.ipc.new_file(keep, table.schema) as writer:
            writer.write_table(table)
    return table.nbytes


def set_up(connection):
    """What the statements of sql/ and queries/ expect of DuckDB. For all sessions, because each cursor is one
    of its own."""
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET GLOBAL integer_division = true")
    # Otherwise it compares each slot with every place, because it expects few slots of generate_series.
    connection.execute("SET GLOBAL asof_loop_join_threshold = 0")
    # That an answer is copied once more costs less than what sql() does instead.
    warnings.filterwarnings("ignore", "Arrow output on a DB-API result")


class DuckDB:
    def __init__(self, directory, source):
        import duckdb

        self.connection = (
            duckdb.connect(f"{directory}/peers.duckdb", read_only=True)
            if source == "native"
            else duckdb.connect()
        )
        if source == "file":
            self.connection.execute(
                f"CREATE VIEW heart AS SELECT * FROM read_parquet('{directory}/heart.parquet')"
            )
        set_up(self.connection)

    def raw(self, form, start, end, wide):
        query = duckdb_select(WIDE if wide else NARROW, start, end)
        if form == "arrow":
            return self.connection.sql(query).to_arrow_table().nbytes
        options = "FORMAT csv, HEADER" if form == "csv" else "FORMAT json"
        self.connection.execute(f"COPY ({query}) TO '/dev/null' ({options})")
        return 0

    def answer(self, statement, parameters, keep=None):
        return handed_over(
            self.connection.execute(statement_text(statement), parameters).to_arrow_table(), keep
        )

    def digest(self, start, end):
        from dataset import answer_of

        return answer_of(self.connection.sql(duckdb_select(NARROW, start, end)).to_arrow_table())

    def types(self, person):
        return [
            [data_type, count]
            for data_type, _, _, count in sorted(self.connection.execute(TYPES, [person]).fetchall())
        ]


class Polars:
    def __init__(self, directory, _):
        import polars

        self.polars, self.path = polars, f"{directory}/heart.parquet"

    def heart(self, start, end):
        polars = self.polars
        time = lambda text: polars.lit(text).str.to_datetime(time_unit="us", time_zone="UTC")
        return polars.scan_parquet(self.path).filter(
            (polars.col("start_date") >= time(start)) & (polars.col("start_date") < time(end))
        )

    def raw(self, form, start, end, wide):
        frame = self.heart(start, end).select(NARROW.split(", ")).collect()
        if form == "arrow":
            return frame.estimated_size()
        out = io.BytesIO()
        frame.write_csv(out) if form == "csv" else frame.write_ndjson(out)
        return out.tell()

    def answer(self, statement, parameters, keep=None):
        return handed_over(getattr(self, statement)(**parameters).collect().to_arrow(), keep)

    def series(self, start, end, width):
        time = self.polars.col("start_date").dt.truncate(f"{width}us").alias("time")
        return self.heart(start, end).group_by(time).agg(self.polars.col("value").mean()).sort("time")

    def days(self, start, end):
        """Hours first, as in sql/days.sql."""
        polars = self.polars
        value, day = (
            polars.col("value"),
            polars.col("hour")
            .dt.convert_time_zone("America/New_York")
            .dt.date()
            .cast(polars.String)
            .alias("day"),
        )
        hours = (
            self.heart(start, end)
            .group_by(polars.col("start_date").dt.truncate("1h").alias("hour"))
            .agg(
                value.sum().alias("sum"),
                value.len().alias("count"),
                value.min().alias("min"),
                value.max().alias("max"),
            )
        )
        total = polars.col("sum").sum()
        return (
            hours.group_by(day)
            .agg(
                total,
                (total / polars.col("count").sum()).alias("avg"),
                polars.col("min").min(),
                polars.col("max").max(),
            )
            .sort("day")
        )


class ClickHouse:
    def __init__(self, directory, _):
        from chdb import session

        self.session = session.Session(f"{directory}/chdb")

    def raw(self, form, start, end, wide):
        columns = NARROW + (", source_properties, device_properties" if wide else "")
        query = f"SELECT {columns} FROM heart {self.within(start, end)} ORDER BY start_date"
        name = {"arrow": "Arrow", "csv": "CSVWithNames", "ndjson": "JSONEachRow"}[form]
        return len(self.session.query(query, name).bytes())

    def answer(self, statement, parameters, keep=None):
        import pyarrow as pa

        body = self.session.query(getattr(self, statement)(**parameters), "Arrow").bytes()
        return handed_over(pa.ipc.open_file(body).read_all(), keep) if keep else len(body)

    def series(self, start, end, width):
        time = (
            f"fromUnixTimestamp64Micro(intDiv(toUnixTimestamp64Micro(start_date), {width}) * {width}, 'UTC')"
        )
        columns = f"{time} AS time, avg(value) AS heart_rate"
        return f"SELECT {columns} FROM heart {self.within(start, end)} GROUP BY time ORDER BY time"

    def days(self, start, end):
        """Hours first, as in sql/days.sql."""
        hour = "toStartOfHour(start_date) AS hour"
        hours = f"SELECT {hour}, {PARTS} FROM heart {self.within(start, end)} GROUP BY hour"
        day = "toString(toDate(hour, 'America/New_York'))"
        return f"SELECT {day} AS day, {WHOLES} FROM ({hours}) GROUP BY day ORDER BY day"

    @staticmethod
    def within(start, end):
        return f"WHERE start_date >= '{start[:19]}' AND start_date < '{end[:19]}'"


class DataFusion:
    """Over the same Parquet file."""

    def __init__(self, directory, _):
        from datafusion import SessionConfig, SessionContext

        self.context = SessionContext(
            SessionConfig({"datafusion.execution.parquet.pushdown_filters": "true"})
        )
        self.context.register_parquet("heart", f"{directory}/heart.parquet")

    def answer(self, statement, parameters, keep=None):
        import pyarrow as pa

        frame = self.context.sql(getattr(self, statement)(**parameters))
        return handed_over(pa.Table.from_batches(frame.collect(), frame.schema()), keep)

    def series(self, start, end, width):
        time = f"date_bin(INTERVAL '{width // 1_000_000} seconds', start_date)"
        columns = f"{time} AS time, avg(value) AS heart_rate"
        return f"SELECT {columns} FROM heart {self.within(start, end)} GROUP BY 1 ORDER BY 1"

    def days(self, start, end):
        hour = "date_trunc('hour', start_date) AS hour"
        hours = f"SELECT {hour}, {PARTS} FROM heart {self.within(start, end)} GROUP BY 1"
        day = "CAST(CAST(hour AT TIME ZONE 'America/New_York' AS DATE) AS VARCHAR)"
        return f"SELECT {day} AS day, {WHOLES} FROM ({hours}) GROUP BY 1 ORDER BY 1"

    def days_straight(self, start, end):
        day = "CAST(CAST(start_date AT TIME ZONE 'America/New_York' AS DATE) AS VARCHAR)"
        values = "sum(value) AS sum, avg(value) AS avg, min(value) AS min, max(value) AS max"
        return f"SELECT {day} AS day, {values} FROM heart {self.within(start, end)} GROUP BY 1 ORDER BY 1"

    @staticmethod
    def within(start, end):
        return f"WHERE start_date >= TIMESTAMP '{start}' AND start_date < TIMESTAMP '{end}'"


class SQLite:
    """For single rows, where nobody is quicker."""

    def __init__(self, directory, _):
        import sqlite3

        self.connection = sqlite3.connect(f"{directory}/peers.sqlite")

    def answer(self, statement, parameters, keep=None):
        import pyarrow as pa

        rows = getattr(self, statement)(**parameters)
        if not keep:
            return len(rows)
        columns = dict(zip(["uuid", "time", "latitude", "longitude", "accuracy"], map(list, zip(*rows))))
        table = pa.table(columns)
        return handed_over(table.set_column(1, "time", table["time"].cast(pa.timestamp("us", "UTC"))), keep)

    def place_at(self, time):
        from datetime import datetime

        moment = round(datetime.fromisoformat(time).timestamp() * 1e6)
        within = "time <= ? AND time >= ? AND accuracy >= 0"
        order = "ORDER BY time DESC, accuracy, uuid LIMIT 1"
        query = f"SELECT uuid, time, latitude, longitude, accuracy FROM places WHERE {within} {order}"
        return self.connection.execute(query, (moment, moment - 4 * 3_600_000_000)).fetchall()


KINDS = {
    "duckdb native": (DuckDB, "native"),
    "duckdb file": (DuckDB, "file"),
    "polars": (Polars, None),
    "clickhouse": (ClickHouse, None),
    "datafusion": (DataFusion, None),
    "sqlite": (SQLite, None),
}


class Library:
    """The process, seen from the one that measures."""

    def __init__(self, kind, directory):
        self.process = subprocess.Popen(
            [sys.executable, __file__, kind, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ask("ready")

    @property
    def pid(self):
        return self.process.pid

    def ask(self, what, **arguments):
        self.process.stdin.write(json.dumps({"what": what, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a peer's process ended")
        return json.loads(line)["answer"]

    def raw(self, form, start, end, wide=False):
        return self.ask("raw", form=form, start=start, end=end, wide=wide), None

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    kind, source = KINDS[sys.argv[1]]
    library = kind(sys.argv[2], source)
    # Only answers go to standard output, whatever a library prints.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        question = json.loads(line)
        what = question.pop("what")
        answer = None if what == "ready" else getattr(library, what)(**question)
        out.write(json.dumps({"answer": answer}) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
