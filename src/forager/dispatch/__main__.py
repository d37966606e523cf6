"""A worker's process with a broker: `python -m forager.dispatch FD`, started by a keeper."""

from __future__ import annotations

from forager.catalog.process import main
from forager.dispatch.receiving import receiving

if __name__ == "__main__":
    main(receiving)
