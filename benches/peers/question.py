"""A question that Almanac and its peers are asked: first whether all say the same, then what each answer costs.

Almanac keeps partial results in memory, and where something was written since it has to read rows again. A peer has no such memory, so the figure for one
question asked again and again would flatter Almanac. Its first answer after a start, and the answer after a record was stored among those asked for, are
measured as well, and have to meet the same marks.
"""

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

import pyarrow as pa

import answers
from lines import Mark, cost_lines
from measure import Cost, alternate, peak_megabytes, precise_cpu_seconds, reset_peak, wait_until_idle
from spans import MAIN


@dataclass
class Peer:
    """Somebody who is asked neither by a statement in sql/ nor by a method of a library."""

    pid: int
    ask: Callable  # -> (size, seconds to the first byte or None)
    columns: Callable  # the answer as columns


@dataclass
class Question:
    job: str
    path: str
    form: str  # of our answer, and of FastAPI's: arrow or json
    columns: Callable  # our answer, a table, as the columns that the peers have
    statement: str  # in sql/; Polars and ClickHouse have a method of that name
    parameters: dict
    peers: list  # libraries by their names, and "fastapi"
    data_type: str
    record: dict  # stored between two answers, without its id; lies within what is asked for
    gate: Mark | None = None
    stretch: Mark | None = None
    others: dict = field(default_factory=dict)  # label -> Peer
    variants: dict = field(
        default_factory=dict
    )  # label -> (library, statement): the same question put in another way


def ask(bench, question):
    everybody = peers_of(bench, question)
    _, _, body = bench.almanac.get(MAIN, question.path, keep=True)
    table = answers.read(body, question.form)
    if not table.num_rows:
        raise answers.Disagreement(f"{question.job}: almanac answers nothing at all")
    ours = question.columns(table)
    for label, peer in everybody.items():
        if differs := answers.difference(ours, peer.columns()):
            raise answers.Disagreement(
                f"{question.job}, almanac against {label}: {differs}\n  almanac was asked {question.path}"
            )
    systems = {"almanac": (bench.almanac.pid, lambda: bench.almanac.get(MAIN, question.path))}
    systems |= {label: (peer.pid, peer.ask) for label, peer in everybody.items()}
    costs = alternate(systems, bench.rounds, bench.budget)
    bench.afterwards.append(lambda: after_writes(bench, question))
    ours = {
        "almanac": costs.pop("almanac"),
        "almanac, first after a start": first_after_a_start(bench, question),
    }
    return cost_lines(question.job, ours | costs, question.gate, question.stretch)


def peers_of(bench, question):
    found = {}
    asked = {
        name: (name, question.statement) for name in question.peers if name != "fastapi"
    } | question.variants
    for label, (name, statement) in asked.items():
        found[label] = library_peer(bench, bench.libraries[name], statement, question.parameters)
    if "fastapi" in question.peers:
        path = f"/ask/{question.statement}?output={question.form}&{urlencode(question.parameters)}"
        columns = lambda: columns_of(answers.read(bench.fastapi.body(path), question.form))
        found["fastapi"] = Peer(bench.fastapi.pid, lambda: bench.fastapi.get(path), columns)
    return found | question.others


def library_peer(bench, library, statement, parameters):
    kept = bench.directory / "answer.arrow"

    def columns():
        library.ask("answer", statement=statement, parameters=parameters, keep=str(kept))
        return columns_of(pa.ipc.open_file(kept.read_bytes()).read_all())

    return Peer(
        library.pid,
        lambda: (library.ask("answer", statement=statement, parameters=parameters), None),
        columns,
    )


def columns_of(table):
    return dict(zip(table.column_names, table.columns))


def measured_once(bench, path):
    cpu, begin = precise_cpu_seconds(bench.almanac.pid), time.monotonic()
    size, first = bench.almanac.get(MAIN, path)
    wall = time.monotonic() - begin
    # What the answer leaves to be done, such as freeing memory, is a part of it.
    time.sleep(0.02)
    return precise_cpu_seconds(bench.almanac.pid) - cpu, wall, size, first


def median_cost(seen, peak):
    cpu, wall, size, first = zip(*seen)
    return Cost(statistics.median(cpu), statistics.median(wall), peak, size[-1], statistics.median(first))


def first_after_a_start(bench, question):
    seen, peak = [], 0.0
    for _ in range(bench.rounds):
        bench.almanac.stop()
        bench.almanac.start()
        wait_until_idle(bench.almanac.pid, quiet=0.5, longest=10)
        seen.append(measured_once(bench, question.path))
        peak = max(peak, peak_megabytes(bench.almanac.pid))
    return median_cost(seen, peak)


def after_writes(bench, question):
    """Only when all jobs are done, because it changes what the others ask for. What was stored is deleted in the end."""
    bench.almanac.get(MAIN, question.path)
    ids, seen = [], []
    reset_peak(bench.almanac.pid)
    for _ in range(max(5, bench.rounds * 2)):
        ids.append(str(uuid.uuid4()))
        bench.almanac.post(MAIN, question.data_type, answers.json_line({"uuid": ids[-1]} | question.record))
        seen.append(measured_once(bench, question.path))
    cost = median_cost(seen, peak_megabytes(bench.almanac.pid))
    bench.almanac.post(
        MAIN,
        "DeletedRecord",
        b"".join(answers.json_line({"deleted_id": one, "deleted_type": question.data_type}) for one in ids),
    )
    return cost_lines(question.job, {"almanac, after a write": cost}, question.gate, question.stretch)
