"""A question that Almanac and its peers are asked: first whether all say the same, then what each answer
costs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

import pyarrow as pa

import answers
import circumstances
from circumstances import Asked
from measure import alternate


@dataclass
class Peer:
    """Somebody who is asked neither by a statement in sql/ nor by a method of a library."""

    pid: int
    ask: Callable  # -> (size, seconds to the first byte or None)
    columns: Callable  # the answer as columns


@dataclass
class Question(Asked):
    form: str = "arrow"  # of our answer, and of FastAPI's: arrow or json
    columns: Callable = None  # our answer, a table, as the columns that the peers have
    statement: str = ""  # in sql/; Polars and ClickHouse have a method of that name
    parameters: dict = field(default_factory=dict)
    peers: list = field(default_factory=list)  # libraries by their names, and "fastapi"
    others: dict = field(default_factory=dict)  # label -> Peer
    variants: dict = field(default_factory=dict)  # label -> (library, statement): the same put in another way


def ask(bench, question):
    everybody = peers_of(bench, question)
    _, _, body = bench.almanac.get(question.person, question.path(0), keep=True)
    table = answers.read(body, question.form)
    if not table.num_rows:
        raise answers.Disagreement(f"{question.job}: almanac answers nothing at all")
    ours = question.columns(table)
    for label, peer in everybody.items():
        if differs := answers.difference(ours, peer.columns()):
            message = (
                f"{question.job}, almanac against {label}: {differs}\n  almanac was asked {question.path(0)}"
            )
            raise answers.Disagreement(message)
    systems = circumstances.systems(bench, question)
    systems |= {label: (peer.pid, peer.ask) for label, peer in everybody.items()}
    return circumstances.lines(bench, question, alternate(systems, bench.rounds, bench.budget))


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

    ask = lambda: (library.ask("answer", statement=statement, parameters=parameters), None)
    return Peer(library.pid, ask, columns)


def columns_of(table):
    return dict(zip(table.column_names, table.columns))
