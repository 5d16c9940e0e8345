"""DuckDB, Polars and ClickHouse (chDB) as libraries: each in a process of its own that answers questions read from its standard input.

They answer in whatever form costs them least: DuckDB's Arrow table stays a table in memory, its csv goes to /dev/null, and so on; no HTTP, no tokens.
`wide` asks for the columns that Almanac answers, otherwise for five: id, start, end, value, unit.
"""

import io
import json
import subprocess
import sys
import time

NARROW = "uuid, start_date, end_date, value, unit"
WIDE = f"{NARROW}, NULL::BIGINT AS count, false AS has_undetermined_duration, NULL::VARCHAR AS extras, source_properties, device_properties"


def duckdb_select(columns, start, end):
    """Ids are stored as UUID and answered as text."""
    columns = columns.replace("uuid", "uuid::VARCHAR AS uuid", 1)
    return f"SELECT {columns} FROM heart WHERE start_date >= '{start}' AND start_date < '{end}' ORDER BY start_date"


class DuckDB:
    def __init__(self, directory, source):
        import duckdb

        self.connection = duckdb.connect(f"{directory}/peers.duckdb", read_only=True) if source == "native" else duckdb.connect()
        if source == "file":
            self.connection.execute(f"CREATE VIEW heart AS SELECT * FROM read_parquet('{directory}/heart.parquet')")
        self.connection.execute("SET TimeZone = 'UTC'")

    def raw(self, form, start, end, wide):
        query = duckdb_select(WIDE if wide else NARROW, start, end)
        if form == "arrow":
            return self.connection.sql(query).to_arrow_table().nbytes
        options = "FORMAT csv, HEADER" if form == "csv" else "FORMAT json"
        self.connection.execute(f"COPY ({query}) TO '/dev/null' ({options})")
        return 0

    def answer(self, start, end):
        from dataset import answer_of

        return answer_of(self.connection.sql(duckdb_select(NARROW, start, end)).to_arrow_table())

    def types(self, person):
        query = "SELECT data_type, min(start_date)::VARCHAR, max(start_date)::VARCHAR, count(*) FROM people WHERE person = ? GROUP BY data_type"
        return [[data_type, count] for data_type, _, _, count in sorted(self.connection.execute(query, [person]).fetchall())]


class Polars:
    def __init__(self, directory, _):
        import polars

        self.polars, self.path = polars, f"{directory}/heart.parquet"

    def raw(self, form, start, end, wide):
        polars = self.polars
        time = lambda text: polars.lit(text).str.to_datetime(time_unit="us", time_zone="UTC")
        frame = polars.scan_parquet(self.path).filter((polars.col("start_date") >= time(start)) & (polars.col("start_date") < time(end)))
        frame = frame.select(NARROW.split(", ")).collect()
        if form == "arrow":
            return frame.estimated_size()
        out = io.BytesIO()
        frame.write_csv(out) if form == "csv" else frame.write_ndjson(out)
        return out.tell()


class ClickHouse:
    def __init__(self, directory, _):
        from chdb import session

        self.session = session.Session(f"{directory}/chdb")

    def raw(self, form, start, end, wide):
        columns = NARROW + (", source_properties, device_properties" if wide else "")
        query = f"SELECT {columns} FROM heart WHERE start_date >= '{start[:19]}' AND start_date < '{end[:19]}' ORDER BY start_date"
        name = {"arrow": "Arrow", "csv": "CSVWithNames", "ndjson": "JSONEachRow"}[form]
        return len(self.session.query(query, name).bytes())


KINDS = {"duckdb native": (DuckDB, "native"), "duckdb file": (DuckDB, "file"), "polars": (Polars, None), "clickhouse": (ClickHouse, None)}


class Library:
    """The process, seen from the one that measures."""

    def __init__(self, kind, directory):
        self.process = subprocess.Popen([sys.executable, __file__, kind, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
