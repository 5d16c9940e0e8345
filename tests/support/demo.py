"""The real binary serving the sample person, for as long as a `with` block lasts."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PERSON = json.loads((ROOT / "data/sample/person.json").read_text())["person"]


class Demo:
    """A server of its own: own port, own data directory, nothing inherited from the caller's ALMANAC_ and
    AWS_ settings."""

    def __init__(self, binary):
        self.binary = Path(binary).resolve()
        self.directory = Path(tempfile.mkdtemp(prefix="almanac-demo."))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url = f"http://{self.address}"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("ALMANAC_", "AWS_"))
        }
        self.environment = kept | {"ALMANAC_LISTEN": self.address}

    def __enter__(self):
        self.log = open(self.directory / "log", "wb")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--demo"],
            cwd=self.directory,
            env=self.environment,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        try:
            self.wait_until_ready()
            self.token = subprocess.run(
                [self.binary, "token", "--user", PERSON],
                cwd=self.directory,
                env=self.environment,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
            self.wait_until_loaded()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def wait_until_ready(self):
        self.wait_for(lambda: self.status("/health/ready") == 200, "ready")

    def wait_until_loaded(self):
        """`serve --demo` prints the lines to try once the sample person is there."""
        self.wait_for(lambda: self.said("curl "), "done loading the sample person")

    def said(self, words):
        return words.encode() in (self.directory / "log").read_bytes()

    def wait_for(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(
                    f"the demo server is not {what}:\n" + (self.directory / "log").read_text()[-4000:]
                )
            time.sleep(0.05)

    def status(self, path):
        try:
            return urllib.request.urlopen(self.url + path, timeout=5).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def get(self, path):
        """The body of an answer that must be a 200."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()
