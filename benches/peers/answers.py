"""Whether two answers are the same: read from whatever form they came in, compared column by column. Knows
nothing of who answered."""

import json
from datetime import datetime

import numpy as np
import pyarrow as pa

# What is left of sums that were added up in another order.
TOLERANCE = 1e-9


class Disagreement(Exception):
    """Two systems answer the same question differently, or one of them not at all. Nothing of it is timed."""


def must_be_equal(job, answers):
    """`answers`: system -> what `dataset.answer_of` says, or whatever the job compares."""
    first, *others = answers.items()
    for label, answer in others:
        if answer != first[1]:
            raise Disagreement(f"{job}: {label} answers {answer}, {first[0]} answers {first[1]}")


def json_line(value):
    return json.dumps(value).encode() + b"\n"


def read(body, form):
    """A table from the body of an answer: an Arrow file, or the objects of a JSON array, all of whose numbers
    may have fractions."""
    if form == "arrow":
        return pa.ipc.open_file(body).read_all()
    rows = json.loads(body)
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: pa.array([plain(row.get(name)) for row in rows]) for name in names})


def instants(texts):
    """RFC 3339 as times."""
    return pa.array([datetime.fromisoformat(text) for text in texts.to_pylist()], pa.timestamp("us", "UTC"))


def days(texts):
    """The date of a time that is told in the zone of the question."""
    return pa.array([text[:10] for text in texts.to_pylist()])


def plain(value):
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def comparable(name, column):
    """Times as microseconds, numbers as they are with NaN for null, all else as text."""
    if name.endswith("time") and pa.types.is_string(column.type):
        column = instants(column)
    if pa.types.is_timestamp(column.type):
        # Never as floats, whose tolerance would be seconds.
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy(zero_copy_only=False)
    if (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_decimal(column.type)
        or pa.types.is_null(column.type)
    ):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.array([str(value) for value in column.to_pylist()])


def difference(ours, theirs):
    """What differs first between two lists of columns, as (name, values); nothing if they are equal."""
    for (name, mine), (_, other) in zip(ours.items(), theirs.items(), strict=True):
        mine, other = comparable(name, mine), comparable(name, other)
        if len(mine) != len(other):
            return f"{name}: {len(mine)} rows against {len(other)}"
        if mine.dtype.kind == "f" and other.dtype.kind == "f":
            # Distances of a few micrometres are rounding, so an absolute term as well.
            unequal = ~np.isclose(mine, other, rtol=TOLERANCE, atol=1e-6, equal_nan=True)
        else:
            unequal = mine.astype(str) != other.astype(str)
        if unequal.any():
            at = int(np.argmax(unequal))
            first = f"the first is row {at}: {mine[at]!r} against {other[at]!r}"
            return f"{name}: {unequal.sum()} of {len(mine)} rows differ, {first}"
    return None
