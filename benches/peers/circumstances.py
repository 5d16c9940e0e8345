"""What an answer of Almanac costs in other circumstances than the best.

Almanac keeps small answers, decoded rows and partial results in memory, each until something is written, and
peers keep less. So the question is timed as one that was not asked before (the same, but some seconds or
minutes later in time), the very same again, as the first after a start, and after a record was stored among
those asked for.
"""

import itertools
import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import answers
from lines import Limit, Mark, cost_lines
from measure import Cost, peak_megabytes, precise_cpu_seconds, reset_peak, wait_until_idle
from spans import MAIN


@dataclass
class Asked:
    """What Almanac is asked in a job."""

    job: str
    path: Callable  # of a number: the question, so many steps later in time; 0 is what the peers are asked
    data_type: str
    record: dict  # stored between two answers, without its id; lies within what is asked for
    gate: Mark | Limit | None = None
    mark: Mark | Limit | None = None
    first: Mark | Limit | None = None  # for the first after a start, where that is another
    person: str = MAIN
    kept: bool = True  # whether an answer is small enough to be kept

    def lines(self, costs):
        found = cost_lines(self.job, costs, self.gate, self.mark)
        for line in found:
            if self.first and line.system == "almanac, first after a start":
                line.mark = self.first
        return found


def systems(bench, asked):
    """For measure.alternate."""
    numbers = itertools.count(1)
    almanac = bench.almanac
    found = {"almanac": (almanac.pid, lambda: almanac.get(asked.person, asked.path(next(numbers))))}
    if asked.kept:
        found["almanac, the same again"] = (almanac.pid, lambda: almanac.get(asked.person, asked.path(0)))
    return found


def lines(bench, asked, costs):
    """Of Almanac and its peers, when those have been timed. What is measured after writes comes later."""
    bench.afterwards.append(lambda: after_writes(bench, asked))
    ours = {label: cost for label, cost in costs.items() if label.startswith("almanac")}
    ours["almanac, first after a start"] = first_after_a_start(bench, asked)
    return asked.lines(ours | costs)


def measured_once(bench, asked):
    cpu, begin = precise_cpu_seconds(bench.almanac.pid), time.monotonic()
    size, first = bench.almanac.get(asked.person, asked.path(0))
    wall = time.monotonic() - begin
    # What the answer leaves to be done, such as freeing memory, is a part of it.
    time.sleep(0.02)
    return precise_cpu_seconds(bench.almanac.pid) - cpu, wall, size, first


def median_cost(seen, peak):
    cpu, wall, size, first = zip(*seen)
    return Cost(statistics.median(cpu), statistics.median(wall), peak, size[-1], statistics.median(first))


def first_after_a_start(bench, asked):
    seen, peak = [], 0.0
    for _ in range(bench.rounds):
        bench.almanac.stop()
        bench.almanac.start()
        wait_until_idle(bench.almanac.pid, quiet=0.5, longest=10)
        seen.append(measured_once(bench, asked))
        peak = max(peak, peak_megabytes(bench.almanac.pid))
    return median_cost(seen, peak)


def after_writes(bench, asked):
    """Only when all questions have been timed, because it changes what others ask for. What was stored is
    deleted in the end."""
    bench.almanac.get(asked.person, asked.path(0))
    ids, seen = [], []
    reset_peak(bench.almanac.pid)
    for _ in range(max(5, bench.rounds * 2)):
        ids.append(str(uuid.uuid4()))
        record = answers.json_line({"uuid": ids[-1]} | asked.record)
        bench.almanac.post(asked.person, asked.data_type, record)
        seen.append(measured_once(bench, asked))
    cost = median_cost(seen, peak_megabytes(bench.almanac.pid))
    bench.almanac.delete(asked.person, asked.data_type, ids)
    return asked.lines({"almanac, after a write": cost})
