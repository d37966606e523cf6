"""Which package owns each table, and what its columns mean.

The owner is the section of the schema that the table is created in; meanings are the comments in
the database, read from the committed dump."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from forager.db.schema import MIGRATIONS, UPGRADES

# tables that another package owns since they were created
MOVED = {"catalog_events": "events", "error_logs": "failures"}
# a section ends with its file
END = "-- end"
SCHEMA = "\n".join(
    f"{(MIGRATIONS / 'versions' / name).read_text('utf-8')}\n{END}" for name in UPGRADES
)


DUMP = Path(__file__).parent / "db" / "schema.txt"


@dataclass(slots=True)
class Described:
    """A table or view: its comment, and name and comment of each column."""

    comment: str = ""
    columns: dict[str, str] = field(default_factory=dict)


def described() -> dict[str, Described]:
    """Every table and view of the dump by name."""
    found: dict[str, Described] = {}
    for part in DUMP.read_text("utf-8").split("\n\n"):
        kind, _, name = part.partition("\n")[0].partition(" ")
        if kind in ("table", "view"):
            found[name] = _described(part.splitlines()[1:])
    return found


def _described(lines: list[str]) -> Described:
    entry = Described()
    for line in lines:
        if line.startswith("    -- "):
            entry.comment = line[7:]
        elif re.match(r"    (?: |SELECT|constraint |CREATE )", line):
            break  # columns come first
        elif not line.startswith("    with "):
            name, _, rest = line.strip().partition(" ")
            entry.columns[name] = rest.partition(" -- ")[2]
    return entry


def tables() -> list[tuple[str, str, str]]:
    """Name, owner and description of every table and view, in the order of their creation."""
    found: dict[str, tuple[str, str]] = {}
    owner = ""
    comment: list[str] = []
    for line in SCHEMA.splitlines():
        if section := re.match(r"-- (\w+) -{10,}$", line):
            owner, comment = section[1], []
        elif line == END:
            owner, comment = "", []
        elif line.startswith("-- "):
            comment.append(line[3:])
        elif made := re.match(r"CREATE (?:TABLE|VIEW) (\w+)", line):
            found[made[1]] = owner, " ".join(comment)
            comment = []
        elif altered := re.match(r"ALTER TABLE (\w+)", line):
            before, description = found[altered[1]]
            found[altered[1]] = owner or before, description
            comment = []
        elif dropped := re.match(r"DROP (?:TABLE|VIEW) ([\w, ]+);", line):
            for name in dropped[1].split(", "):
                del found[name]
        elif not line.startswith("--"):
            comment = []
    return [(name, MOVED.get(name, owner), about) for name, (owner, about) in found.items()]
