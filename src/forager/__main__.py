"""The `forager` command, also as `python -m forager`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from forager.cli.quick import quick_answer
from forager.processes.started import StartedProcess, start_runner

# commands that run a crawl in the foreground, and options with which they do not
_CRAWLING = frozenset({"crawl", "demo", "resume"})
_NOT_CRAWLING = frozenset({"--help", "-h", "--detach", "--dry-run", "--serve", "--no-jobs"})
_WORKER = "worker"
# the process must read the same file, which it finds in an environment variable
_CONFIG = "--config"


def main() -> None:
    # what is crawled, exported and saved belongs to its owner; processes we start inherit it
    os.umask(0o077)
    # most allocations of a command are imported modules, which are never freed
    gc.set_threshold(100_000, 20, 20)
    if quick_answer(sys.argv[1:]):
        return
    spare = spare_runner(sys.argv[1:])
    try:
        from forager.cli import main as cli

        cli.main(spare)
    finally:
        if spare is not None:
            spare.discard()


def spare_runner(arguments: Sequence[str]) -> StartedProcess | None:
    """Start the process of a crawl before its command is imported: it is ready 0.3 s sooner."""
    command = _running_command(arguments)
    try:
        # the logs of a worker are not held back by a progress bar
        return None if command is None else start_runner(holds_logs=command != _WORKER)
    except OSError:  # the supervisor will try again, and say what is wrong
        return None


def _running_command(arguments: Sequence[str]) -> str | None:
    """The command of a command line that probably runs crawls."""
    remaining = iter(arguments)
    command = next(remaining, "")
    while command.startswith("-"):  # a global option, each of which has a value
        if "=" not in command:
            next(remaining, "")
        command = next(remaining, "")
    if any(word.startswith(_CONFIG) for word in arguments):
        return None
    runs = command in (*_CRAWLING, _WORKER) and _NOT_CRAWLING.isdisjoint(arguments)
    return command if runs else None


if __name__ == "__main__":
    main()
