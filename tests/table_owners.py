"""Which package owns each table: the section of the schema that the table is created in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

SCHEMA = (files("forager.db") / "migrations" / "versions" / "0001_initial.sql").read_text("utf-8")


def tables() -> Iterator[tuple[str, str, str]]:
    """Name, owner and description of every table and view."""
    owner = ""
    comment: list[str] = []
    for line in SCHEMA.splitlines():
        if section := re.match(r"-- (\w+) -{10,}$", line):
            owner, comment = section[1], []
        elif line.startswith("-- "):
            comment.append(line[3:])
        elif made := re.match(r"CREATE (?:TABLE|VIEW) (\w+)", line):
            yield made[1], owner, " ".join(comment)
            comment = []
        elif not line.startswith("--"):
            comment = []
