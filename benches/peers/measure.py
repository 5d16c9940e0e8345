"""What a process costs: CPU seconds, wall seconds, peak memory. Reads /proc; knows nothing of jobs."""

import os
import statistics
import time
from dataclasses import dataclass, field

TICK = 1 / os.sysconf("SC_CLK_TCK")


def stat(pid):
    """The fields of /proc/<pid>/stat after the command's name, which may hold blanks."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def children(pid):
    """Processes whose parent is `pid`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(stat(name)[1]) == pid:
                found.append(int(name))
        except OSError:
            pass
    return found


def cpu_seconds(pid):
    """User and system time of all threads of the process, of its living children, and of the children it has
    waited for."""
    fields = stat(pid)
    ticks = sum(int(fields[at]) for at in (11, 12, 13, 14))
    total = ticks * TICK
    for child in children(pid):
        try:
            total += sum(int(stat(child)[at]) for at in (11, 12)) * TICK
        except OSError:
            pass
    return total


def precise_cpu_seconds(pid):
    """The same of the process alone, to the nanosecond: one short answer is less than a tick of /proc."""
    return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid() gives for another process


def written_bytes(pid):
    """What the process has handed to the disk, whether it is still there or not."""
    with open(f"/proc/{pid}/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("write_bytes:"))


def peak_megabytes(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def reset_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


def wait_until_idle(pid, quiet=2.0, longest=240.0):
    """Until the process has used less than a twentieth of a core for a while, so that upkeep of one job is
    not counted in the next."""
    deadline = time.monotonic() + longest
    since, before = time.monotonic(), cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(0.25)
        now, used = time.monotonic(), cpu_seconds(pid)
        if used - before > 0.05 * quiet:
            since, before = now, used
        elif now - since >= quiet:
            return
    print(f"  (process {pid} is still busy after {longest:.0f} s)", flush=True)


@dataclass
class Cost:
    """Medians over the rounds of one system in one job, for one answer."""

    cpu: float
    wall: float
    peak: float
    size: int = 0
    first_byte: float | None = None


@dataclass
class Rounds:
    cpu: list = field(default_factory=list)
    wall: list = field(default_factory=list)
    first: list = field(default_factory=list)
    peak: float = 0.0
    size: int = 0
    spent: float = 0.0

    def cost(self):
        first = statistics.median(self.first) if self.first else None
        return Cost(statistics.median(self.cpu), statistics.median(self.wall), self.peak, self.size, first)


def alternate(systems, rounds, budget):
    """Costs by label. `systems`: label -> (pid, ask), where `ask()` gets one answer and returns (its size,
    seconds to its first byte or None).

    The systems take turns, so that a busy moment of the machine hits all of them. A round of a quick answer
    asks often enough for the clock of /proc to see it. A system that has used up its budget of seconds takes
    no further turn.
    """
    measured = {label: Rounds() for label in systems}
    repeats = {}
    for label, (_, ask) in systems.items():
        # This one is not counted: it also warms up.
        begin = time.monotonic()
        ask()
        once = time.monotonic() - begin
        repeats[label] = max(1, min(400, round(0.5 / max(once, 1e-4))))
    for _ in range(rounds):
        for label, (pid, ask) in systems.items():
            seen = measured[label]
            if seen.spent > budget:
                continue
            reset_peak(pid)
            cpu, begin = cpu_seconds(pid), time.monotonic()
            for _ in range(repeats[label]):
                seen.size, first = ask()
                if first is not None:
                    seen.first.append(first)
            wall = time.monotonic() - begin
            seen.cpu.append((cpu_seconds(pid) - cpu) / repeats[label])
            seen.wall.append(wall / repeats[label])
            seen.peak = max(seen.peak, peak_megabytes(pid))
            seen.spent += wall
    return {label: seen.cost() for label, seen in measured.items()}


class Meter:
    """What a process takes from here on: processor seconds, wall seconds, bytes written."""

    def __init__(self, pid):
        self.pid, self.begin = pid, time.monotonic()
        self.cpu_before, self.written_before = cpu_seconds(pid), written_bytes(pid)

    def cpu(self):
        return cpu_seconds(self.pid) - self.cpu_before

    def wall(self):
        return time.monotonic() - self.begin

    def written(self):
        return written_bytes(self.pid) - self.written_before
