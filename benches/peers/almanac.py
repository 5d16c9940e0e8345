"""Almanac as its users have it: the real binary, over HTTP, with a token."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from answers import json_line

JSONL = "application/x-jsonl"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Almanac:
    def __init__(self, binary, directory):
        self.binary, self.directory, self.port = Path(binary).resolve(), Path(directory), free_port()
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("ALMANAC_", "AWS_"))
        }
        self.environment = kept | {
            "ALMANAC_LISTEN": f"127.0.0.1:{self.port}",
            "ALMANAC_DATA_DIR": str(self.directory / "almanac"),
            "ALMANAC_LOG": "warn",
        }
        self.refused = 0  # bodies that had to be sent again
        # Connections of each thread, by person.
        self.local = threading.local()

    def start(self):
        self.log = open(self.directory / "almanac.log", "ab")
        self.process = subprocess.Popen(
            [self.binary, "serve"], env=self.environment, stdout=self.log, stderr=self.log
        )
        deadline = time.monotonic() + 60
        while not self.answers("/health/ready"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"almanac does not start; see {self.directory}/almanac.log")
            time.sleep(0.002)
        return self

    def stop(self):
        self.local = threading.local()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def answers(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def create(self, person):
        """Through the command line, which also makes the installation and its signing key."""
        subprocess.run([self.binary, "init"], env=self.environment, check=True, capture_output=True)
        subprocess.run(
            [self.binary, "token", "--user", person], env=self.environment, check=True, capture_output=True
        )

    def token(self, person):
        """What `almanac token` prints, made here because a thousand processes would take longer than the
        jobs."""
        key = bytes.fromhex((self.directory / "almanac/signing.key").read_text().strip())
        claims = {
            "iss": "almanac",
            "aud": "almanac",
            "sub": person,
            "svc_userid": person,
            "iat": int(time.time()),
            "exp": int(time.time()) + 86_400,
        }
        encode = lambda part: base64.urlsafe_b64encode(part).rstrip(b"=")
        signed = encode(b'{"alg":"HS256","typ":"JWT"}') + b"." + encode(json.dumps(claims).encode())
        return (signed + b"." + encode(hmac.new(key, signed, hashlib.sha256).digest())).decode()

    def headers(self, person):
        return {"Authorization": f"Bearer {self.token(person)}"}

    def connection(self, person):
        connections = self.local.__dict__.setdefault("connections", {})
        if person not in connections:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
            connections[person] = (connection, self.headers(person))
            if len(connections) > 8:
                connections.pop(next(iter(connections)))[0].close()
        return connections[person]

    def post(self, person, data_type, body, content_type=JSONL):
        """Until it is stored: where there is no room for the body now it is sent again, as clients do."""
        deadline = time.monotonic() + 120
        while True:
            status, text = self.post_once(person, data_type, body, content_type)
            if status == 201:
                return
            if status != 429 or time.monotonic() > deadline:
                raise SystemExit(f"almanac answers {status} to a body of {data_type}: {text[:500]!r}")
            self.refused += 1
            time.sleep(0.1)

    def post_once(self, person, data_type, body, content_type):
        connection, headers = self.connection(person)
        headers = headers | {"Content-Type": content_type}
        try:
            connection.request("POST", f"/ingest/v1/record/{data_type}", body, headers)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # Idle while the others had their turn, as below. Records have ids, so a second attempt changes
            # nothing.
            connection.close()
            connection.request("POST", f"/ingest/v1/record/{data_type}", body, headers)
            answer = connection.getresponse()
        return answer.status, answer.read()

    def delete(self, person, data_type, ids):
        body = b"".join(json_line({"deleted_id": one, "deleted_type": data_type}) for one in ids)
        self.post(person, "DeletedRecord", body)

    def get(self, person, path, keep=False):
        """(size, seconds to the first byte), and the body when it is kept."""
        connection, headers = self.connection(person)
        begin = time.monotonic()
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The connection was idle while the others had their turn, and was closed for it.
            connection.close()
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
        buffer, size, first, kept = bytearray(1 << 18), 0, None, []
        while count := answer.readinto(buffer):
            first = first or time.monotonic() - begin
            size += count
            if keep:
                kept.append(bytes(buffer[:count]))
        if answer.status != 200:
            raise SystemExit(f"almanac answers {answer.status} to {path}")
        return (size, first, b"".join(kept)) if keep else (size, first)
