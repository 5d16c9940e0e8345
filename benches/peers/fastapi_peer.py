"""What a small team would write: DuckDB's own tables behind FastAPI. Run by uvicorn with PEER_DIRECTORY set; five columns, no tokens.

Its csv is pyarrow's: pandas, the more likely choice, took 1.7 s for what DuckDB itself writes in 0.04 s."""

import io
import os

import duckdb
import pyarrow as pa
import pyarrow.csv
from fastapi import FastAPI, Response

from libraries import NARROW, duckdb_select

app = FastAPI()
database = duckdb.connect(f"{os.environ['PEER_DIRECTORY']}/peers.duckdb", read_only=True)
database.execute("SET TimeZone = 'UTC'")


@app.get("/samples")
def samples(start: str, end: str, output: str = "arrow"):
    result = database.cursor().sql(duckdb_select(NARROW, start, end))
    if output == "arrow":
        table, out = result.to_arrow_table(), io.BytesIO()
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        return Response(out.getvalue(), media_type="application/vnd.apache.arrow.file")
    out = io.BytesIO()
    pyarrow.csv.write_csv(result.to_arrow_table(), out)
    return Response(out.getvalue(), media_type="text/csv")


@app.get("/types")
def types(person: str):
    query = "SELECT data_type, min(start_date)::VARCHAR, max(start_date)::VARCHAR, count(*) FROM people WHERE person = ? GROUP BY data_type"
    rows = database.cursor().execute(query, [person]).fetchall()
    return [{"data_type": name, "start": start, "end": end, "count": count} for name, start, end, count in sorted(rows)]
