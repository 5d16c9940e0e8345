"""The SQL of the peers, from sql/. One statement may hold another, named in braces on a line of its own,
where a parameter may get its value: one of sql/, or of the project's queries/, which say what a question
means. Where those would cost a peer more than a statement of its own does, it has that, and its header says
so."""

import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = {"": HERE / "sql", "queries": HERE.parents[1] / "queries"}


INCLUDED = re.compile(r"^ *\{([\w/]+)(?: with \$(\w+) = (\d+))?\}$", re.MULTILINE)


@cache
def statement(name):
    folder, _, file = name.rpartition("/")
    lines = (FOLDERS[folder] / f"{file}.sql").read_text().splitlines()
    return INCLUDED.sub(included, "\n".join(line for line in lines if not line.lstrip().startswith("--")))


def included(found):
    name, parameter, value = found.groups()
    return statement(name).replace(f"${parameter}", value) if parameter else statement(name)
