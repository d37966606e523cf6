"""Which package owns each table: the section of the schema that the table is created in."""

from __future__ import annotations

import re

from forager.db.schema import MIGRATIONS, UPGRADES

# a section ends with its file
END = "-- end"
SCHEMA = "\n".join(
    f"{(MIGRATIONS / 'versions' / name).read_text('utf-8')}\n{END}" for name in UPGRADES
)


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
    return [(name, owner, description) for name, (owner, description) in found.items()]
