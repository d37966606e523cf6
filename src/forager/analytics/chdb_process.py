"""A process that runs one query with chdb, from standard input to standard output.

The engine takes hundreds of megabytes and an unknown time. In a separate process it can be stopped,
and returns its memory.
"""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    sql = sys.stdin.read()
    try:
        answer = import_module("chdb").query(sql, "JSONCompact")
    except Exception as error:
        sys.exit(str(error)[:2000])
    sys.stdout.buffer.write(answer.bytes())


if __name__ == "__main__":
    main()
