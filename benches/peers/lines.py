"""What a job hands to the report: lines with figures, and the marks that the first of them has to meet."""

from dataclasses import dataclass


@dataclass
class Mark:
    """Ours divided by the named peer's (`best` for the best of all); to be at most (or, for throughput, at least) this."""

    peer: str
    ratio: float


@dataclass
class Line:
    job: str
    system: str
    figure: float
    unit: str
    note: str = ""
    gate: Mark | None = None
    stretch: Mark | None = None
    more_is_better: bool = False


def cost_lines(job, costs, gate=None, stretch=None):
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
            Line(
                job, label, cost.cpu * 1000, "CPU ms", note, gate if ours else None, stretch if ours else None
            )
        )
    return lines
