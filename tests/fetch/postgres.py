"""The PostgreSQL of this test run; the fixture of this name in this folder is a web server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from forager.db.embedded import join_server


@pytest.fixture(scope="session", name="server")
def postgres(run_folder: Path) -> Iterator[str]:
    external = os.environ.get("FORAGER_TEST_DATABASE_URL")
    if external:
        yield external
        return
    with join_server(run_folder / "server") as use:
        yield use.url
