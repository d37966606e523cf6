"""A run that ends with an error names its cause."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.__main__ import main
from chaos.run import Plan, _in_background, _Run
from forager.db.database import Database
from forager.errors import DatabaseUnavailable, DiskFull


async def _fails() -> None:
    raise LookupError("the cause")


def test_the_cause_of_a_failed_run_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(*_: object) -> None:
        async with _in_background(_fails()):
            await asyncio.Event().wait()

    monkeypatch.setattr("chaos.__main__.run", run)
    monkeypatch.setattr("sys.argv", ["chaos", "--minutes", "0", "--seed", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    shown = capsys.readouterr().err
    assert "LookupError: the cause" in shown
    assert "in _fails" in shown


@pytest.mark.parametrize("error", [DatabaseUnavailable, DiskFull])
async def test_a_run_waits_for_a_database_that_recovers(
    error: type[Exception], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.db.outages.RETRY_INTERVAL", 0.01)
    monkeypatch.setattr("forager.db.outages.FULL_INTERVAL", 0.01)
    failures = [error("not yet"), error("not yet")]

    def connection() -> Any:
        if failures:
            raise failures.pop()
        return database.connection()

    waiting = object.__new__(_Run)
    waiting._plan = Plan(seed=1)
    waiting._cluster = SimpleNamespace(database=SimpleNamespace(connection=connection))  # type: ignore[assignment]
    await waiting._database_time()
    assert failures == []
