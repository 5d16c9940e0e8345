"""The lines of the jobs as a Markdown table, each of ours with its ratio to the best of the peers, and to
those that its marks name."""

import platform
import re

from lines import Limit, Line


def peaks(lines):
    """Peaks of Almanac that the jobs saw between their resets."""
    return [
        float(found[1]) for line in lines if line.ours and (found := re.search(r"peak (\d+) MB", line.note))
    ]


def insert(lines, more):
    """Behind what is already known of Almanac in the same job."""
    last = max(at for at, line in enumerate(lines) if line.job == more[0].job and line.ours)
    lines[last + 1 : last + 1] = more


def memory(peak, limit):
    return Line("memory", "almanac", peak, "MB at the peak of all questions", "", None, Limit(limit))


def ratio_to(wanted, ours, lines):
    """Our figure divided by that of a peer, and the peer."""
    others = [line for line in lines if line.job == ours.job and not line.ours and line.figure]
    if wanted == "best":
        # Peers that are asked for fewer columns than Almanac answers are in it: against their best form.
        peer = (max if ours.more_is_better else min)(others, key=lambda line: line.figure, default=None)
    else:
        peer = next((line for line in others if line.system == wanted), None)
    return (ours.figure / peer.figure, peer.system) if peer else (None, wanted)


def verdict(mark, ours, lines):
    if mark is None:
        return ""
    if isinstance(mark, Limit):
        return judged(f"{figure(mark.figure)} {ours.unit}", ours.figure, mark.figure, ours)
    ratio, peer = ratio_to(mark.peer, ours, lines)
    if ratio is None:
        return f"{mark.ratio}x {peer}: not measured"
    return f"{ratio:.2f}x {peer}, " + judged(f"{mark.ratio}x", ratio, mark.ratio, ours)


def judged(asked, reached, bound, ours):
    held = reached >= bound if ours.more_is_better else reached <= bound
    return f"asked {asked}: {'yes' if held else '**no**'}"


def beside(ours, lines):
    ratio, peer = ratio_to("best", ours, lines) if ours.ours else (None, None)
    return "" if ratio is None else f"{ratio:.2f}x {peer}"


def figure(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def table(lines, bench):
    machine = f"{platform.processor() or platform.machine()}, Linux {platform.release()}"
    text = [
        f"{10.4 * bench.scale:.2f} million rows of one person, {bench.people} people; {machine}",
        "",
        "| job | who | figure | | beside the best | gate | mark |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        who = f"**{line.system}**" if line.system == "almanac" else line.system
        judgements = (
            f"{beside(line, lines)} | {verdict(line.gate, line, lines)} | {verdict(line.mark, line, lines)}"
        )
        text.append(
            f"| {line.job} | {who} | {figure(line.figure)} {line.unit} | {line.note} | {judgements} |"
        )
    return "\n".join(text) + "\n"
