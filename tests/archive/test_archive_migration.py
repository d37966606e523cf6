"""The archive moves while it is used, is stopped and resumes; nothing is lost on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from obstore.store import LocalStore

from archived_job import html, select_refs, start_job
from forager.archive.deletion import plan_prune, prune
from forager.archive.local import LocalStorage
from forager.archive.migration import StorageMove
from forager.archive.objects import ObjectStorage
from forager.archive.options import MovingStorage, archive_options, is_same_place, place_name
from forager.archive.reader import read_response
from forager.archive.retention import Policy
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage
from forager.archive.warc_record import ArchiveError
from forager.cli.system.archive import route_of
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.jobs.queue import Queue
from forager.settings import Settings
from support.sql import execute

MOVER = Path(__file__).with_name("archive_mover.py")
PLACE = "s3://bucket/folder"


def ignore(_: int) -> None:
    """For tests that are not about progress."""


@pytest.fixture
def local(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "archive")


@pytest.fixture
def bucket(tmp_path: Path) -> ObjectStorage:
    return ObjectStorage(LocalStore(tmp_path / "bucket", mkdir=True))


async def finished_job(database: Database, storage: Storage, queue: Queue, commits: int) -> None:
    """Each commit in a separate segment."""
    job = await start_job(database, storage, queue)
    for number in range(commits):
        await job.settle([html(3 * number + i) for i in range(3)])
        await job.writer.close()
    await job.end()


async def bodies(database: Database, storage: Storage) -> dict[str, bytes]:
    refs = [ArchiveRef(*row) for row in await select_refs(database)]
    responses = [await read_response(storage, ref) for ref in refs]
    return {response.url: response.body for response in responses}


async def names(storage: Storage) -> list[str]:
    return [stored.name for stored in await storage.list_segments()]


@pytest.mark.parametrize("back", [False, True], ids=["to-objects", "to-files"])
async def test_every_segment_is_copied_once_and_the_source_stays(
    database: Database, local: LocalStorage, bucket: ObjectStorage, queue: Queue, back: bool
) -> None:
    source, target = (bucket, local) if back else (local, bucket)
    await finished_job(database, source, queue, 4)
    pages = await bodies(database, source)
    seen: list[int] = []
    move = StorageMove(database, source, target, PLACE)
    assert await move.count() == 4

    moved = await move.run(seen.append)

    assert (moved.copied, moved.found, moved.complete, seen) == (4, 0, True, [1, 2, 3, 4])
    assert await bodies(database, target) == await bodies(database, source) == pages
    again = await move.run(ignore)
    assert (again.copied, again.found) == (0, 0)
    assert await move.delete_source() == 4
    assert await names(source) == []
    assert await bodies(database, target) == pages


async def test_what_is_being_written_waits_for_a_later_run(
    database: Database, local: LocalStorage, bucket: ObjectStorage, queue: Queue
) -> None:
    job = await start_job(database, local, queue)
    await job.settle([html(1)])
    move = StorageMove(database, local, bucket, PLACE)
    first = await move.run(ignore)
    assert (first.copied, first.waiting, first.complete) == (0, 1, False)
    await job.settle([html(2)])
    await job.end()
    second = await move.run(ignore)
    assert (second.copied, second.waiting) == (1, 0)
    assert len(await bodies(database, bucket)) == 2


async def test_what_was_written_in_the_new_place_is_only_noted(
    database: Database, local: LocalStorage, bucket: ObjectStorage, queue: Queue
) -> None:
    await finished_job(database, bucket, queue, 2)
    moved = await StorageMove(database, local, bucket, PLACE).run(ignore)
    assert (moved.copied, moved.found, moved.missing) == (0, 2, [])


async def test_a_copy_that_was_cut_short_is_made_again(
    database: Database, local: LocalStorage, bucket: ObjectStorage, queue: Queue
) -> None:
    await finished_job(database, bucket, queue, 2)
    [first, second] = await names(bucket)
    whole = await bucket.read(ArchiveRef(first, 0, await bucket.size(first)))
    for name, data in ((first, whole[:-5]), (second, b"something else")):
        segment = local.open_segment(name)
        await segment.append([data])
        await segment.close()
    assert (await StorageMove(database, bucket, local, PLACE).run(ignore)).copied == 2
    assert await bodies(database, local) == await bodies(database, bucket)


async def test_a_copy_that_arrives_altered_is_not_left(
    database: Database, local: LocalStorage, queue: Queue, tmp_path: Path
) -> None:
    class Altering(LocalStorage):
        async def read(self, ref: ArchiveRef) -> bytes:
            return bytes(len(await super().read(ref)))

    await finished_job(database, local, queue, 1)
    target = Altering(tmp_path / "broken")
    move = StorageMove(database, local, target, PLACE)
    with pytest.raises(ArchiveError, match="did not arrive"):
        await move.run(ignore)
    assert await names(target) == []
    assert await move.count() == 1


async def test_a_copy_that_was_lost_or_cut_since_is_made_again(
    database: Database, local: LocalStorage, bucket: ObjectStorage, queue: Queue, tmp_path: Path
) -> None:
    await finished_job(database, bucket, queue, 3)
    pages = await bodies(database, bucket)
    move = StorageMove(database, bucket, local, PLACE)
    await move.run(ignore)
    assert await move.recheck() == 0
    [lost, cut, _] = await names(local)
    await local.delete(lost)
    os.truncate(tmp_path / "archive" / cut, 5)

    assert await move.recheck() == 2
    assert await move.count() == 2
    assert (await move.run(ignore)).copied == 2
    assert await bodies(database, local) == pages


async def test_a_segment_that_is_nowhere_is_named(
    database: Database, local: LocalStorage, bucket: ObjectStorage, queue: Queue
) -> None:
    await finished_job(database, local, queue, 2)
    [lost, _] = await names(local)
    await local.delete(lost)
    moved = await StorageMove(database, local, bucket, PLACE).run(ignore)
    assert (moved.copied, moved.missing, moved.complete) == (1, [lost], False)


async def test_reads_and_clean_ups_work_in_both_places_meanwhile(
    database: Database, local: LocalStorage, bucket: ObjectStorage, queue: Queue
) -> None:
    await finished_job(database, local, queue, 3)
    both = MovingStorage(bucket, local)
    await finished_job(database, both, queue, 1)
    pages = await bodies(database, both)
    assert len(await names(both)) == 4
    move = StorageMove(database, local, bucket, PLACE)
    await move.run(ignore)
    assert await bodies(database, both) == pages
    await move.delete_source()
    assert await bodies(database, both) == pages
    with pytest.raises(NotFound):
        await both.size("2026/03/01/unknown-1-0000.warc.zst")
    await execute(database, "DELETE FROM crawl_visited RETURNING url")
    plan = await plan_prune(database, Policy())
    assert len((await prune(database, both, plan.delete)).deleted) == 4
    assert await names(both) == []


@pytest.mark.parametrize("moment", ["before-put", "after-put", "after-mark"])
async def test_killed_anywhere_it_goes_on(
    database: Database,
    local: LocalStorage,
    bucket: ObjectStorage,
    queue: Queue,
    tmp_path: Path,
    moment: str,
) -> None:
    await finished_job(database, bucket, queue, 3)
    pages = await bodies(database, bucket)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *(str(MOVER), database.url, str(tmp_path / "bucket"), str(tmp_path / "archive"), moment),
    )
    assert await child.wait() == -signal.SIGKILL
    assert await bodies(database, MovingStorage(local, bucket)) == pages
    moved = await StorageMove(database, bucket, local, PLACE).run(ignore)
    assert moved.copied + moved.found == (2 if moment == "after-mark" else 3)
    assert await bodies(database, local) == pages
    assert not list((tmp_path / "archive").rglob("*.part"))


def test_settings_name_both_places(settings: Settings, tmp_path: Path) -> None:
    moving = settings.model_copy(
        update={"archive_url": str(tmp_path / "new"), "archive_old_url": "local"}
    )
    assert isinstance(archive_options(moving).open(), MovingStorage)
    assert archive_options(moving).old_place == settings.home / "archive"
    assert not isinstance(archive_options(settings).open(), MovingStorage)


def test_one_place_has_one_name(tmp_path: Path) -> None:
    assert place_name("s3://bucket/folder/") == "s3://bucket/folder"
    folder = tmp_path / "my archive"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    spellings: list[str | Path] = [
        folder,
        f"{folder}/",
        f"{tmp_path}/link",
        f"{tmp_path}/elsewhere/../my archive",
        f"file://{tmp_path}/my%20archive",
        f"file://localhost{tmp_path}/my%20archive/",
    ]
    assert {place_name(spelling) for spelling in spellings} == {str(folder.resolve())}


def test_places_are_the_same_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert not is_same_place(one, other)
    one.mkdir()
    other.mkdir()
    assert is_same_place(one, f"file://localhost{one}")
    assert not is_same_place(one, other)
    assert not is_same_place(one, PLACE)
    # as of a folder that is mounted at two places, which takes rights that tests have not
    monkeypatch.setattr(Path, "samefile", lambda *_: True)
    assert is_same_place(one, other)


def test_an_archive_is_not_moved_onto_itself(settings: Settings, tmp_path: Path) -> None:
    """Its only copy would be the source that is deleted."""
    (tmp_path / "my archive").mkdir()
    to = f"{tmp_path}/my archive"
    old = f"file://localhost{tmp_path}/my%20archive"
    named_twice = settings.model_copy(update={"archive_url": to, "archive_old_url": old})
    with pytest.raises(InvalidInput, match="already"):
        route_of(named_twice, to)
