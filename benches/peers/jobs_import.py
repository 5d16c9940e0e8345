"""An import of many records in bodies of 20,000: what it takes for a row, and how much memory at its peak.
One body after the other is how the data of all other jobs is stored; import-four sends four at once."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np

import dataset
from lines import Limit, Line
from measure import Meter, peak_megabytes, reset_peak, wait_until_idle
from spans import MAIN

ROWS = 20_000


class Import:
    """Measures what Almanac takes while the bodies are made and sent."""

    def __init__(self, bench):
        self.bench, self.rows, self.sent, self.refused = bench, 0, 0, bench.almanac.refused
        reset_peak(bench.almanac.pid)
        self.meter = Meter(bench.almanac.pid)

    def send(self, person, series, threads):
        """A few bodies at a time are made, so that this process does not hold them all."""
        post = lambda body: self.bench.almanac.post(person, series.data_type, body)
        bodies = series.bodies(ROWS)
        while some := list(islice(bodies, 8)):
            list(threads.map(post, (body for _, body in some)))
            self.rows += sum(count for count, _ in some)
            self.sent += sum(len(body) for _, body in some)

    def lines(self, how, limit):
        pid, cpu = self.bench.almanac.pid, self.meter.cpu()
        wait_until_idle(pid, quiet=6, longest=20 if self.bench.quick else 180)
        each = lambda seconds: seconds / self.rows * 1e6
        note = f"{self.rows:,} rows, upkeep afterwards {each(self.meter.cpu() - cpu):.2f}"
        note += (
            f", {refused} bodies sent again" if (refused := self.bench.almanac.refused - self.refused) else ""
        )
        written = self.meter.written() / self.sent
        return [
            Line("import", f"almanac, {how}", each(cpu), "CPU us a row", note),
            Line("import, written", f"almanac, {how}", written, "bytes for each sent"),
            Line(
                "import, memory",
                f"almanac, {how}",
                peak_megabytes(pid),
                "MB at the peak",
                "",
                None,
                Limit(limit),
            ),
        ]


def one_person(bench):
    """All that the main person has. The lines of the import."""
    measured = Import(bench)
    with ThreadPoolExecutor(1) as threads:
        for series in bench.person:
            measured.send(MAIN, series, threads)
    return measured.lines("one after the other", 200)


def import_four(bench):
    """A tenth as many, for somebody else."""
    bench.almanac.stop()
    bench.almanac.start()
    series = dataset.heart_rate(np.random.default_rng(), max(4 * ROWS, round(1_000_000 * bench.scale)))
    measured = Import(bench)
    with ThreadPoolExecutor(4) as threads:
        measured.send(dataset.person_id(900_200), series, threads)
    return measured.lines("four at once", 256)
