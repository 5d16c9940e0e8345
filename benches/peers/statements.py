"""The SQL of the peers, from sql/. One statement may hold another, named in braces on a line of its own."""

import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent / "sql"


@cache
def statement(name):
    text = "\n".join(
        line for line in (HERE / f"{name}.sql").read_text().splitlines() if not line.startswith("--")
    )
    return re.sub(r"^ *\{(\w+)\}$", lambda found: statement(found[1]), text, flags=re.MULTILINE)
