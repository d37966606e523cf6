"""An outage of the database, as a service in the background meets it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
import psycopg
import pytest

from forager.background import background_services
from forager.db.database import Database
from forager.db.patience import Patience, keep_up, keep_watch
from forager.errors import DatabaseUnavailable, DiskFull
from forager.logs import configure_logs, get_logger
from forager.settings import Settings
from support.databases import outage

WORDS = "nothing is done now"
OVER = "the trouble is over"
Said = list[dict[str, object]]


def said(capsys: pytest.CaptureFixture[str]) -> Said:
    lines = [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in lines if line["level"] in ("warning", "info", "error")]


@pytest.fixture(autouse=True)
def spoken_logs(quiet_logs: None) -> None:
    configure_logs("info", "json")


class Service:
    """Asks the database something, and lets a test wait for how that went."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.failed = 0
        self._changed = asyncio.Condition()
        self._well = False

    async def look(self) -> None:
        try:
            async with self._database.connection() as connection:
                await connection.execute("SELECT 1")
        except DatabaseUnavailable:
            await self._note(False)
            raise
        await self._note(True)

    async def _note(self, well: bool) -> None:
        async with self._changed:
            self._well = well
            self.failed += not well
            self._changed.notify_all()

    async def failures(self, number: int) -> None:
        async with self._changed, asyncio.timeout(30):
            await self._changed.wait_for(lambda: self.failed >= number)

    async def is_well(self) -> None:
        async with self._changed, asyncio.timeout(30):
            await self._changed.wait_for(lambda: self._well)


async def test_an_outage_is_said_when_it_begins_and_when_it_ends(
    postgres: str, database_url: str, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(database.answering_within(1.0))
    patience = Patience(get_logger("test"), WORDS)
    watching = asyncio.ensure_future(keep_watch(service.look, patience, every=0.01))
    try:
        await service.is_well()
        with outage(postgres, database_url):
            await service.failures(3)
        await service.is_well()
        # the look after it has ended the trouble for certain
        await asyncio.wait_for(_until(lambda: not patience.is_needed), 30)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    lines = said(capsys)
    assert [line["event"] for line in lines] == [WORDS, OVER]
    assert lines[0]["level"] == "warning"
    assert "the database cannot be used" in str(lines[0]["reason"])
    assert lines[1]["what"] == WORDS


async def _until(fits: Callable[[], bool]) -> None:
    while not fits():
        await asyncio.sleep(0.01)


def test_a_long_outage_is_said_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    patience = Patience(get_logger("test"), WORDS, said_every=0.0)
    for _ in range(3):
        with patience:
            raise DiskFull("no space")
    patience.over()
    patience.over()
    assert [line["event"] for line in said(capsys)] == [WORDS] * 3 + [OVER]


def test_only_trouble_that_passes_is_endured() -> None:
    patience = Patience(get_logger("test"), WORDS, also=(TimeoutError,))
    with patience:
        raise TimeoutError
    with patience:
        raise psycopg.OperationalError
    assert patience.is_needed
    with pytest.raises(KeyError), patience:
        raise KeyError("a bug")
    with pytest.raises(asyncio.CancelledError), patience:
        raise asyncio.CancelledError


async def test_upkeep_goes_on_after_trouble() -> None:
    looks = 0
    done = asyncio.Event()

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise DatabaseUnavailable
        done.set()

    keeping = asyncio.ensure_future(keep_up(look, Patience(get_logger("test"), WORDS), every=0.01))
    await asyncio.wait_for(done.wait(), 30)
    keeping.cancel()


async def test_every_service_of_a_worker_says_it_once(
    postgres: str,
    database_url: str,
    database: Database,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a worker has them, looking far more often than in earnest."""
    hasty = settings.model_copy(update={"scheduler_interval": 0.02, "watchdog_interval": 0.02})
    service = Service(database.answering_within(1.0))
    with outage(postgres, database_url):
        async with background_services(database.answering_within(0.5), hasty):
            watch = Patience(get_logger("test"), WORDS)
            watching = asyncio.ensure_future(keep_watch(service.look, watch, every=0.01))
            await service.failures(5)
            watching.cancel()
    events = [line["event"] for line in said(capsys)]
    assert "tasks are not scheduled now" in events
    assert len(events) == len(set(events))
