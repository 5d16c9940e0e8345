"""What a job hands to the report: lines with figures, and what is asked of those of ours."""

from dataclasses import dataclass


@dataclass
class Mark:
    """Ours divided by the named peer's (`best` for the best of all); to be at most (or, for throughput, at
    least) this."""

    peer: str
    ratio: float


@dataclass
class Limit:
    """Ours in the unit of its line, to be at most this (or at least, where more is better). It was set on a
    shared machine with two cores; elsewhere only ratios mean something."""

    figure: float


@dataclass
class Line:
    job: str
    system: str
    figure: float
    unit: str
    note: str = ""
    gate: Mark | Limit | None = None  # was reached, and may not be lost again
    mark: Mark | Limit | None = None  # is to be reached
    more_is_better: bool = False

    @property
    def ours(self):
        return self.system.startswith("almanac")


def cost_lines(job, costs, gate=None, mark=None):
    lines = []
    for label, cost in costs.items():
        note = f"wall {cost.wall * 1000:.1f} ms, peak {cost.peak:.0f} MB"
        if cost.size:
            note += f", {cost.size / 1e6:.1f} MB"
        if cost.first_byte is not None:
            note += f", first byte {cost.first_byte * 1000:.1f} ms"
        # Ours in other circumstances has to meet the marks as well.
        ours = label.startswith("almanac")
        lines.append(
            Line(job, label, cost.cpu * 1000, "CPU ms", note, gate if ours else None, mark if ours else None)
        )
    return lines
