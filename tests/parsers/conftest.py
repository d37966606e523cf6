"""The parsers of a small shop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from parsers.archived_kiosk import kiosk_parsers


@pytest.fixture(autouse=True)
def sandboxes(kept_sandboxes: None) -> None:
    """Tests share the processes that read products."""


@pytest.fixture
def kiosk() -> Iterator[None]:
    """The parsers of the kiosk are loaded in this process during the test."""
    with kiosk_parsers():
        yield
