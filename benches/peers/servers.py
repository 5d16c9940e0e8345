"""The peers that are servers of their own: FastAPI, PostgreSQL, InfluxDB, VictoriaMetrics. On free loopback
ports, durable as they come."""

import http.client
import json
import os
import pwd
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from almanac import free_port
from measure import children

HERE = Path(__file__).parent


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} does not start")
        time.sleep(0.002)


class Server:
    """Runs as long as a `with` lasts, or from start() to stop()."""

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class HttpServer(Server):
    """A process that is ready when it answers `ready` with 2xx."""

    ready = "/"

    def __init__(self, directory):
        self.directory, self.port = Path(directory), free_port()
        # A connection of each thread.
        self.local = threading.local()

    def run(self, command, environment=None):
        self.log = open(self.directory / f"{type(self).__name__.lower()}.log", "ab")
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        return self

    def start(self):
        self.launch()
        wait_for(self.answers, type(self).__name__)
        return self

    @property
    def pid(self):
        return self.process.pid

    def answers(self):
        try:
            return self.request("GET", self.ready)[0] // 100 == 2
        except OSError:
            self.local = threading.local()
            return False

    def request(self, method, path, body=None, headers=None):
        """(status, size, seconds to the first byte, body)."""
        if not hasattr(self.local, "kept"):
            self.local.kept = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        kept = self.local.kept
        begin = time.monotonic()
        try:
            kept.request(method, path, body, headers or {})
            answer = kept.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # Idle while the others had their turn, and closed for it.
            kept.close()
            begin = time.monotonic()
            kept.request(method, path, body, headers or {})
            answer = kept.getresponse()
        first = time.monotonic() - begin
        content = answer.read()
        return answer.status, len(content), first, content

    def get(self, path):
        _, size, first, _ = self.granted(path)
        return size, first

    def body(self, path):
        return self.granted(path)[3]

    def granted(self, path):
        status, size, first, content = self.request("GET", path)
        if status != 200:
            raise SystemExit(f"{type(self).__name__} answers {status} to {path}: {content[:300]!r}")
        return status, size, first, content

    def stop(self):
        self.local = threading.local()
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class FastApi(HttpServer):
    ready = "/openapi.json"

    def launch(self):
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "fastapi_peer:app",
            "--app-dir",
            HERE,
            "--port",
            str(self.port),
            "--log-level",
            "warning",
            "--timeout-keep-alive",
            "3600",
        ]
        self.run(command, os.environ | {"PEER_DIRECTORY": str(self.directory)})


class InfluxDB(HttpServer):
    ready = "/ping"

    def __init__(self, directory, programs):
        super().__init__(directory)
        self.program = programs / "usr/bin/influxd"
        home = self.directory / "influxdb"
        home.mkdir(exist_ok=True)
        self.config = home / "influxdb.conf"
        # Defaults otherwise: each write is in a synced log before it is answered.
        self.config.write_text(
            f'reporting-disabled = true\nbind-address = "127.0.0.1:{free_port()}"\n'
            f'[meta]\ndir = "{home}/meta"\n[data]\ndir = "{home}/data"\nwal-dir = "{home}/wal"\n'
            f'[http]\nbind-address = "127.0.0.1:{self.port}"\nlog-enabled = false\n'
            "[monitor]\nstore-enabled = false\n"
        )

    def launch(self):
        self.run([self.program, "-config", self.config])

    def start(self):
        super().start()
        status, _, _, content = self.request("POST", "/query?q=CREATE%20DATABASE%20bench", b"")
        if status != 200:
            raise SystemExit(f"InfluxDB: {content!r}")
        return self

    def write(self, lines):
        status, _, _, content = self.request("POST", "/write?db=bench&precision=us", lines)
        if status != 204:
            raise SystemExit(f"InfluxDB answers {status}: {content[:300]!r}")


class VictoriaMetrics(HttpServer):
    ready = "/health"

    def __init__(self, directory, programs):
        super().__init__(directory)
        self.program = programs / "usr/bin/victoria-metrics"

    def launch(self):
        # A month of minutes is more points than it answers by default.
        options = ["-retentionPeriod=100y", "-search.maxPointsPerTimeseries=1000000"]
        self.run(
            [
                self.program,
                f"-storageDataPath={self.directory}/victoria",
                f"-httpListenAddr=127.0.0.1:{self.port}",
                *options,
            ]
        )

    def load(self, name, person, milliseconds, values):
        for begin in range(0, len(values), 50_000):
            part = slice(begin, begin + 50_000)
            line = json.dumps(
                {
                    "metric": {"__name__": name, "person": person},
                    "values": values[part],
                    "timestamps": milliseconds[part],
                }
            )
            status, _, _, content = self.request("POST", "/api/v1/import", line.encode())
            if status != 204:
                raise SystemExit(f"VictoriaMetrics answers {status}: {content[:300]!r}")

    def flush(self):
        self.get("/internal/force_flush")

    @staticmethod
    def rollups(functions, name, person, span, seconds, cache=True):
        """The path of a question: `functions` of each window. It labels windows by their ends and takes
        points after the start and until the end, so that it is asked for ends, and for the millisecond
        before."""
        start, end = (int(datetime.fromisoformat(moment).timestamp()) for moment in span)
        names = ", ".join(f'"{function}_over_time"' for function in functions)
        query = quote(f'aggr_over_time(({names}), {name}{{person="{person}"}}[{seconds}s] offset 1ms)')
        return f"/api/v1/query_range?query={query}&start={start + seconds}&end={end}&step={seconds}" + (
            "" if cache else "&nocache=1"
        )

    def windows(self, path, functions, seconds):
        """That answer as columns: the starts of windows, and each function."""
        found = {
            series["metric"].get("rollup"): series["values"]
            for series in json.loads(self.body(path))["data"]["result"]
        }
        columns = [found[f"{function}_over_time"] for function in functions]
        starts = pa.array([round((at - seconds) * 1e6) for at, _ in columns[0]], pa.timestamp("us", "UTC"))
        return {"time": starts} | {
            function: pa.array([float(value) for _, value in column])
            for function, column in zip(functions, columns)
        }


class Postgres(Server):
    """Durable: fsync and synchronous_commit are on, as they are by default."""

    def __init__(self, directory):
        self.directory, self.port = Path(directory) / "postgres", free_port()
        self.programs = sorted(
            Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name)
        )[-1]
        self.directory.mkdir(exist_ok=True)
        if os.getuid() == 0:
            # It refuses root. Its directory is below ours, which its user must be allowed to pass.
            shutil.chown(self.directory, "postgres")
            for parent in self.directory.parents[:2]:
                parent.chmod(0o755)
        if not (self.directory / "data").exists():
            self.run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8")

    def as_postgres(self):
        if os.getuid() != 0:
            return {}
        user = pwd.getpwnam("postgres")
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def run(self, program, *arguments):
        command = [self.programs / program, "-D", self.directory / "data", *arguments]
        subprocess.run(
            command, check=True, cwd=self.directory, stdout=subprocess.DEVNULL, **self.as_postgres()
        )

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.directory}"
        options += " -c max_connections=200 -c shared_buffers=512MB -c max_wal_size=8GB"
        self.run("pg_ctl", "-w", "-s", "-l", self.directory / "log", "-o", options, "start")
        self.pid = int((self.directory / "data/postmaster.pid").read_text().split()[0])
        return self

    def stop(self):
        self.run("pg_ctl", "-m", "fast", "-w", "-s", "stop")

    def url(self):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def sql(self, text, **options):
        command = [
            self.programs / "psql",
            "-X",
            "-q",
            "-t",
            "-A",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            text,
            self.url(),
        ]
        return subprocess.run(command, check=True, capture_output=True, **options).stdout.decode().strip()

    def backends_gone(self):
        """Until only the permanent processes are left, so that the postmaster has counted the others'
        time."""
        wait_for(lambda: len(children(self.pid)) <= 6, "the end of PostgreSQL's connections", 20)
