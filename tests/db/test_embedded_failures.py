"""Why the embedded server does not start, in words that help."""

from __future__ import annotations

from pathlib import Path

import pytest

from forager.db.embedded import failures

INITDB = """\
creating directory /home/u/.local/share/forager/postgres/data.new ... ok
selecting dynamic shared memory implementation ... posix
running bootstrap script ... """


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            'FATAL:  could not write to file "pg_wal/xlogtemp.1": No space left on device',
            failures.DISK_FULL_HINT,
        ),
        (
            'FATAL:  could not resize shared memory segment "/PostgreSQL.1" to 1 bytes:'
            " No space left on device",
            failures.MEMORY_HINT,
        ),
        ("FATAL:  could not map anonymous shared memory: Cannot allocate", failures.MEMORY_HINT),
    ],
)
def test_a_full_disk_is_told_from_a_lack_of_memory(words: str, hint: str, tmp_path: Path) -> None:
    """initdb takes away what it wrote, so that the disk has room again when it has failed."""
    error = failures.explain_exit("not created", INITDB + words, tmp_path, tmp_path / "log")
    assert error.hint is not None
    assert str(error.hint).startswith(hint)
