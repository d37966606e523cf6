"""Both storages keep the same promises; the local one also through full disks and dead writers."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archive.archive_samples import NAME, body_of, storage_of
from forager.archive.local import LocalStorage
from forager.archive.objects import ObjectStorage
from forager.archive.reader import SegmentScan, read_response
from forager.archive.segment import ArchiveRef
from forager.archive.storage import Storage, open_storage
from forager.archive.warc_record import ArchiveError, DamagedRecord, SegmentExists, StorageFull
from forager.errors import InvalidInput, NotFound

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="watches Linux system calls")
CHILD = Path(__file__).with_name("archive_child.py")
CHILD_PATH = {"PYTHONPATH": str(CHILD.parents[1])}


@pytest.fixture(params=["local", "objects"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return storage_of(request.param, tmp_path)


@pytest.fixture
def local(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


async def test_what_is_appended_can_be_read_by_its_reference(storage: Storage) -> None:
    segment = storage.open_segment(NAME)
    refs = await segment.append([b"one", b"three", b"two"])
    await segment.close()
    assert [await storage.read(ref) for ref in refs] == [b"one", b"three", b"two"]
    assert await storage.size(NAME) == segment.size == 11


async def test_nothing_exists_before_the_first_append(storage: Storage) -> None:
    await storage.open_segment(NAME).close()
    assert await storage.list_segments() == []


async def test_a_segment_is_never_opened_twice(storage: Storage) -> None:
    first, second = storage.open_segment(NAME), storage.open_segment(NAME)
    (ref,) = await first.append([b"mine"])
    with pytest.raises(SegmentExists):
        await second.append([b"other"])
    assert second.sealed
    assert await storage.read(ref) == b"mine"
    await first.close()


async def test_a_closed_segment_takes_nothing(storage: Storage) -> None:
    segment = storage.open_segment(NAME)
    await segment.close()
    with pytest.raises(ArchiveError, match="accepts no more"):
        await segment.append([b"late"])


async def test_references_past_the_end_are_damage(storage: Storage) -> None:
    segment = storage.open_segment(NAME)
    await segment.append([b"0123456789"])
    await segment.close()
    with pytest.raises(DamagedRecord):
        await storage.read(ArchiveRef(NAME, 5, 10))
    with pytest.raises(ArchiveError):
        await storage.read(ArchiveRef(NAME, 50, 10))


async def test_missing_segments_are_not_found(storage: Storage) -> None:
    with pytest.raises(NotFound):
        await storage.read(ArchiveRef(NAME, 0, 1))
    with pytest.raises(NotFound):
        await storage.size(NAME)
    await storage.delete(NAME)


async def test_delete_and_list(storage: Storage) -> None:
    names = [f"2026/0{month}/01/job-{month}-0000.warc.zst" for month in (1, 2, 3)]
    for name in names:
        segment = storage.open_segment(name)
        await segment.append([b"x"])
        await segment.close()
    await storage.delete(names[1])
    listed = await storage.list_segments()
    assert [(s.name, s.size) for s in listed] == [(names[0], 1), (names[2], 1)]
    assert [s.name for s in await storage.list_segments("2026/03")] == [names[2]]
    assert [s.name for s in await storage.list_segments("2026/01/01/job-1")] == [names[0]]


async def test_names_cannot_leave_the_storage(storage: Storage) -> None:
    bad = "../outside-1-0000.warc.zst"
    with pytest.raises(InvalidInput):
        storage.open_segment(bad)
    for call in (storage.delete(bad), storage.size(bad), storage.read(ArchiveRef(bad, 0, 1))):
        with pytest.raises(InvalidInput):
            await call


async def test_files_that_are_no_segments_are_ignored(local: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert await local.list_segments() == []


async def test_a_local_segment_grows_and_an_object_does_not(tmp_path: Path) -> None:
    file = storage_of("local", tmp_path).open_segment(NAME)
    assert [ref.offset for batch in ([b"ab"], [b"c"]) for ref in await file.append(batch)] == [0, 2]
    assert not file.sealed
    await file.close()
    thing = storage_of("objects", tmp_path).open_segment(NAME)
    await thing.append([b"ab"])
    assert thing.sealed


def test_storages_are_chosen_by_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert isinstance(open_storage(tmp_path), LocalStorage)
    assert isinstance(open_storage(str(tmp_path)), LocalStorage)
    assert isinstance(open_storage(tmp_path.as_uri()), LocalStorage)
    assert isinstance(open_storage("s3://bucket/folder"), ObjectStorage)


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "s3://", "file://host/x", "file:///", "memory:///"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="no place for an archive"):
        open_storage(url)


async def test_an_unwritable_folder_is_an_archive_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArchiveError):
        await LocalStorage(tmp_path / "file").open_segment(NAME).append([b"x"])


# --- durability of files -------------------------------------------------------------------


@needs_linux
async def test_one_sync_per_batch_and_folders_once(
    local: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real_data, real_folder = os.fdatasync, os.fsync

    def data(fd: int) -> None:
        calls.append(f"data {os.fstat(fd).st_size}")
        real_data(fd)

    def folder(fd: int) -> None:
        calls.append("folder " + os.path.relpath(Path(f"/proc/self/fd/{fd}").readlink(), tmp_path))
        real_folder(fd)

    monkeypatch.setattr(os, "fdatasync", data)
    monkeypatch.setattr(os, "fsync", folder)
    segment = local.open_segment(NAME)
    await segment.append([b"ab", b"cd"])
    folders = [f"folder {name}" for name in ("2026/03/01", "2026/03", "2026", ".", "..")]
    assert calls == ["data 4", *folders]
    await segment.append([b"ef"])
    assert calls[6:] == ["data 6"]
    await segment.close()


@needs_linux
async def test_after_a_failed_sync_the_segment_is_left(
    local: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No disk here fails on demand, so the system call does."""
    segment = local.open_segment(NAME)
    (ref,) = await segment.append([b"good"])

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        with pytest.raises(ArchiveError, match="Input/output error"):
            await segment.append([b"lost"])
    assert segment.sealed
    with pytest.raises(ArchiveError, match="accepts no more"):
        await segment.append([b"again"])
    assert await local.read(ref) == b"good"
    assert await local.size(NAME) == 4
    await segment.close()


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_write_that_does_not_fit_leaves_no_trace(local: LocalStorage) -> None:
    segment = local.open_segment(NAME)
    (ref,) = await segment.append([b"a" * 100_000])
    with file_size_limit(150_000), pytest.raises(StorageFull) as raised:
        await segment.append([b"b" * 100_000])
    assert raised.value.hint
    assert await local.size(NAME) == segment.size == 100_000
    (after,) = await segment.append([b"c" * 100_000])
    await segment.close()
    assert after.offset == 100_000
    assert await local.read(ref) == b"a" * 100_000
    assert await local.read(after) == b"c" * 100_000


def can_mount(folder: Path) -> bool:
    command = ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", str(folder)]
    return bool(shutil.which("unshare")) and subprocess.run(command).returncode == 0


async def test_a_full_disk_stops_the_writer_and_keeps_what_it_has(tmp_path: Path) -> None:
    script = (
        'mount -t tmpfs -o size=1m none "$1" && "$2" "$3" "$1" job 1 1000 20000'
        ' && exit 3; cp -r "$1/." "$4"'
    )
    disk, saved = tmp_path / "disk", tmp_path / "saved"
    disk.mkdir()
    saved.mkdir()
    arguments = [str(disk), sys.executable, str(CHILD), str(saved)]
    if not can_mount(disk):
        pytest.skip("no mounting allowed here; the size limit above takes the same path")
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "sh", *arguments],
        env=os.environ | CHILD_PATH, capture_output=True, check=True,
    )  # fmt: skip
    *lines, last = done.stdout.splitlines()
    assert json.loads(last) == {"error": "StorageFull"}
    assert len(lines) > 10
    await assert_readable(saved, lines)


# --- dead and parallel writers ---------------------------------------------------------------


def start_child(folder: Path, owner: str, batches: int, size: int) -> subprocess.Popen[bytes]:
    arguments = [str(folder), owner, "1", str(batches), str(size)]
    return subprocess.Popen(
        [sys.executable, CHILD, *arguments], env=os.environ | CHILD_PATH, stdout=subprocess.PIPE
    )


async def assert_readable(folder: Path, lines: list[bytes]) -> None:
    """Every reference that was printed holds its page, and lies before any torn tail."""
    storage = LocalStorage(folder)
    known = []
    for number, *place in map(json.loads, lines):
        known.append(ArchiveRef(*place))
        response = await read_response(storage, known[-1])
        assert response.url.endswith(f"/page/{number}?q=a%20b")
        assert response.body == body_of(number, len(response.body))
    for stored in await storage.list_segments():
        scan = SegmentScan(storage, stored.name)
        found = [ref async for ref, _ in scan]
        assert {ref for ref in known if ref.segment == stored.name}.issubset(found)
        ends = [ref.end for ref in found]
        assert scan.tail is None or scan.tail.offset == max(ends, default=0)


@pytest.mark.parametrize("seed", range(4))
async def test_what_was_reported_durable_survives_kill_9(tmp_path: Path, seed: int) -> None:
    child = start_child(tmp_path, "job", 10_000, 300_000)
    assert child.stdout
    lines = [child.stdout.readline() for _ in range(random.Random(seed).randint(1, 40))]
    child.kill()
    lines += child.stdout.readlines()
    child.stdout.close()
    child.wait()
    await assert_readable(tmp_path, [line for line in lines if line.endswith(b"\n")])


async def test_processes_share_a_folder(tmp_path: Path) -> None:
    owners = ["job-a", "job-b", "job-c", "job-c"]
    children = [start_child(tmp_path, owner, 10, 20_000) for owner in owners]
    outputs: list[list[bytes]] = [child.communicate()[0].splitlines() for child in children]
    codes = [child.returncode for child in children]
    # two of them claim one owner and lease: the second to come gets nothing, and harms nothing
    assert codes[:2] == [0, 0]
    assert sorted(codes[2:]) == [0, 1]
    refused = outputs.pop(codes.index(1))
    assert [json.loads(line) for line in refused] == [{"error": "SegmentExists"}]
    await assert_readable(tmp_path, [line for lines in outputs for line in lines])
