"""What a small team would write: DuckDB's own tables behind FastAPI. Run by uvicorn with PEER_DIRECTORY set; five columns, no tokens."""

import io
import os

import duckdb
import pyarrow as pa
from fastapi import FastAPI, Response

from libraries import NARROW, duckdb_select

app = FastAPI()
database = duckdb.connect(f"{os.environ['PEER_DIRECTORY']}/peers.duckdb", read_only=True)
database.execute("SET TimeZone = 'UTC'")


@app.get("/samples")
def samples(start: str, end: str, output: str = "arrow"):
    result = database.cursor().execute(duckdb_select(NARROW, start, end))
    if output == "arrow":
        table, out = result.to_arrow_table(), io.BytesIO()
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        return Response(out.getvalue(), media_type="application/vnd.apache.arrow.file")
    frame = result.df()
    if output == "csv":
        return Response(frame.to_csv(index=False), media_type="text/csv")
    return Response(frame.to_json(orient="records", lines=True, date_format="iso"), media_type="application/x-ndjson")


@app.get("/types")
def types(person: str):
    query = "SELECT data_type, min(start_date), max(start_date), count(*) FROM people WHERE person = ? GROUP BY data_type"
    rows = database.cursor().execute(query, [person]).fetchall()
    return [{"data_type": name, "start": start, "end": end, "count": count} for name, start, end, count in sorted(rows)]
