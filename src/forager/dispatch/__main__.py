"""A worker's process with a broker: `python -m forager.dispatch FD`, started by a supervisor."""

from __future__ import annotations

from forager.dispatch.application import receiving
from forager.tasks.workers.process import main

if __name__ == "__main__":
    main(receiving)
