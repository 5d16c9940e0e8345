"""From nothing to the first answer: cold."""

import time

from jobs_raw import samples
from lines import Limit, Line, Mark
from servers import Postgres
from spans import DAY, MAIN


def cold(bench):
    """Start of the process to its first answer (a day of samples), everything stored and the system's page
    cache warm."""
    victoria, postgres = bench.victoria(), Postgres(bench.directory)
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
        victoria.get(
            f"/api/v1/query_range?query=avg_over_time(heart_rate%7Bperson=%22{MAIN}%22%7D[60s])"
            "&start=1709596800&end=1709683200&step=60"
        )

    def start_postgres():
        postgres.start()
        postgres.sql(
            "SELECT id, start_date, value FROM heart "
            f"WHERE start_date >= '{DAY[0]}' AND start_date < '{DAY[1]}'"
        )

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
    for system in (bench.almanac, bench.fastapi, victoria):
        system.start()
    lines = []
    for label, seen in walls.items():
        gate, mark = (Mark("victoriametrics", 0.5), Limit(40)) if label == "almanac" else (None, None)
        middle = sorted(seen)[len(seen) // 2]
        lines.append(Line("cold", label, middle * 1000, "ms to the first answer", "", gate, mark))
    return lines
