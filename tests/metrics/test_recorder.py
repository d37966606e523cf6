"""What processes record is added up in the database: all of it, once, whatever happens."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest

from forager.db.database import Connection, Database
from forager.errors import DatabaseUnavailable
from forager.metrics import store
from forager.metrics.meters import Counter, Histogram, Key
from forager.metrics.recorder import Recorder, recording
from forager.settings import Settings

CHILD = Path(__file__).with_name("metrics_child.py")
NAME = "things_total"


def things() -> Counter:
    return Counter(NAME, "", ("kind",))


async def values(database: Database) -> dict[Key, float]:
    async with database.connection() as connection:
        return await store.select_values(connection)


async def writers(database: Database) -> int:
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT count(*) FROM metric_writers")
        [number] = await cursor.fetchone() or (0,)
    return int(number)


async def test_many_add_to_the_same_numbers(database: Database, settings: Settings) -> None:
    """Also at the same time, in any order of labels, without waiting for each other for ever."""

    async def process(number: int) -> None:
        counter, times = things(), Histogram("times_seconds", "", bounds=(1.0,))
        recorder = Recorder(database, settings, meters=[counter, times])
        for step in range(10):
            for kind in range(8):
                counter.add(str((kind + number) % 8))
            times.observe(step)
            await recorder.run_once()
        await recorder.end()

    await asyncio.gather(*(process(number) for number in range(6)))
    added = await values(database)
    assert {added[NAME, (str(kind),), ""] for kind in range(8)} == {60}
    assert added["times_seconds", (), "1"] == 12
    assert added["times_seconds", (), "+Inf"] == 48
    assert added["times_seconds", (), "sum"] == 6 * 45
    assert await writers(database) == 0


async def test_labels_may_hold_anything(database: Database, settings: Settings) -> None:
    counter = Counter(NAME, "", ("a", "b"))
    labels = ('quo"te, {brace}', "back\\slash NULL é")
    counter.add(*labels)
    await Recorder(database, settings, meters=[counter]).run_once()
    assert await values(database) == {(NAME, labels, ""): 1}


async def test_an_addition_that_was_not_answered_counts_once(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = things()
    recorder = Recorder(database, settings, meters=[counter])
    really_add = store.add_values

    async def add_and_lose_the_answer(
        connection: Connection, writer: UUID, addition: int, values: Mapping[Key, float]
    ) -> None:
        await really_add(connection, writer, addition, values)
        raise DatabaseUnavailable("the line is gone")

    counter.add("first")
    with monkeypatch.context() as patched:
        patched.setattr(store, "add_values", add_and_lose_the_answer)
        with pytest.raises(DatabaseUnavailable):
            await recorder.run_once()
    counter.add("first")
    await recorder.run_once()
    assert await values(database) == {(NAME, ("first",), ""): 2}


async def test_what_cannot_be_added_is_kept(database: Database, settings: Settings) -> None:
    counter = things()
    recorder = Recorder(database, settings, meters=[counter])
    counter.add("kept")
    async with database.connection() as connection:
        await connection.execute("ALTER TABLE metric_values RENAME TO away")
        await recorder.end()  # endures it
        counter.add("kept")
        await connection.execute("ALTER TABLE away RENAME TO metric_values")
    await recorder.run_once()
    assert await values(database) == {(NAME, ("kept",), ""): 2}


async def test_a_process_that_leaves_adds_its_last(database: Database, settings: Settings) -> None:
    slow = settings.model_copy(update={"heartbeat_interval": 60.0, "watchdog_interval": 60.0})
    from forager.metrics.catalog import PAGES

    PAGES.take()
    async with recording(database, slow):
        PAGES.add("fetched", amount=3)
    assert (await values(database))["forager_pages_total", ("fetched",), ""] == 3


async def test_a_killed_process_loses_only_what_it_had_not_added(
    database: Database, database_url: str
) -> None:
    """It is killed in the middle of recording; what it said to have added is there."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), database_url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        said = [await asyncio.to_thread(child.stdout.readline) for _ in range(3)]
        child.send_signal(signal.SIGKILL)
    finally:
        child.kill()
        rest, _ = child.communicate(timeout=60)
    least = int((said + rest.splitlines())[-1])
    found = (await values(database))[NAME, ("child",), ""]
    # the next addition may have been written and not yet be said
    assert found in (least, least + 10)
