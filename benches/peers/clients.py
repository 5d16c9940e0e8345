"""Many clients at once, played by wrk. It takes its share of the two cores from everybody alike."""

import re
import subprocess
from dataclasses import dataclass

POSTING = """
local thread_number = 0
function setup(thread) thread:set("id", thread_number); thread_number = thread_number + 1 end
local count = 0
function request()
   count = count + 1
   return wrk.format("POST", "%(path)s", %(headers)s, string.format(%(body)s))
end
"""

VISITING = """
local requests = %(requests)s
local thread_number = 0
function setup(thread) thread:set("id", thread_number); thread_number = thread_number + 1 end
local count = nil
function request()
   -- The threads begin at different visitors.
   count = (count or id * 37) + 1
   local wanted = requests[count %% #requests + 1]
   return wrk.format("GET", wanted[1], wanted[2])
end
"""


@dataclass(order=True)
class Load:
    rate: float  # answers a second
    tail: float  # the 99th of a hundred, in ms
    bad: int = 0  # answers that were not 2xx
    failed: str = ""

    def note(self):
        return (f", {self.bad} NOT 2xx" if self.bad else "") + (f", {self.failed}" if self.failed else "")


def table_of(headers):
    return "{" + ", ".join(f'["{name}"] = "{value}"' for name, value in headers.items()) + "}"


def posting(path, headers, body):
    """A script that posts; `body` is what string.format takes, and may name `id` of the thread and `count` of
    the request."""
    return POSTING % {"path": path, "headers": table_of(headers), "body": body}


def visiting(requests):
    """A script that gets each of (path, headers) in turn."""
    return VISITING % {
        "requests": "{\n"
        + "".join(f'{{"{path}", {table_of(headers)}}},\n' for path, headers in requests)
        + "}"
    }


def wrk(directory, port, script, seconds, connections=64):
    file = directory / "wrk.lua"
    file.write_text(script)
    command = [
        "wrk",
        f"-t{min(2, connections)}",
        f"-c{connections}",
        f"-d{seconds}s",
        "--timeout",
        "30s",
        "--latency",
        "-s",
        file,
        f"http://127.0.0.1:{port}",
    ]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out).groups()
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    failed = re.search(r"Socket errors: .*", out)
    return Load(
        rate,
        float(number) * {"us": 1e-3, "ms": 1, "s": 1000}[unit],
        int(bad[1]) if bad else 0,
        failed[0] if failed else "",
    )
