"""The lines of the jobs as a Markdown table, with ratios to the peers that the marks name."""

import platform
import re

from lines import Line


def peaks(lines):
    """Peaks of Almanac that the jobs saw between their resets."""
    return [
        float(found[1])
        for line in lines
        if line.system.startswith("almanac") and (found := re.search(r"peak (\d+) MB", line.note))
    ]


def insert(lines, more):
    """Behind what is already known of Almanac in the same job."""
    last = max(
        at for at, line in enumerate(lines) if line.job == more[0].job and line.system.startswith("almanac")
    )
    lines[last + 1 : last + 1] = more


def memory(peak):
    return Line("memory", "almanac", peak, "MB at the peak of all jobs", "gate 256 MB, stretch 128 MB")


def ratio_to(mark, ours, lines):
    others = [line for line in lines if line.job == ours.job and not line.system.startswith("almanac")]
    if mark.peer == "best":
        # Peers that are asked for fewer columns than Almanac answers are in it: the mark is against their best form.
        peer = (max if ours.more_is_better else min)(others, key=lambda line: line.figure, default=None)
    else:
        peer = next((line for line in others if line.system == mark.peer), None)
    return (ours.figure / peer.figure, peer.system) if peer and peer.figure else (None, mark.peer)


def verdict(mark, ours, lines):
    if mark is None:
        return ""
    ratio, peer = ratio_to(mark, ours, lines)
    if ratio is None:
        return f"{mark.ratio}x {peer}: not measured"
    held = ratio >= mark.ratio if ours.more_is_better else ratio <= mark.ratio
    return f"{ratio:.2f}x {peer} (asked {mark.ratio}x): {'yes' if held else '**no**'}"


def figure(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def table(lines, bench):
    text = [
        f"{10.4 * bench.scale:.2f} million rows of one person, {bench.people} people; {platform.processor() or platform.machine()}, Linux {platform.release()}",
        "",
        "| job | who | figure | | gate | stretch |",
        "|---|---|---|---|---|---|",
    ]
    for line in lines:
        who = f"**{line.system}**" if line.system == "almanac" else line.system
        text.append(
            f"| {line.job} | {who} | {figure(line.figure)} {line.unit} | {line.note} | {verdict(line.gate, line, lines)} | {verdict(line.stretch, line, lines)} |"
        )
    return "\n".join(text) + "\n"
