"""An S3-compatible store keeps the promises of a storage, and its errors are distinguished."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from hashlib import sha256

import pytest

from forager.archive.objects import IN_ONE_REQUEST, ObjectStorage, open_bucket
from forager.archive.segment import ArchiveRef
from forager.archive.storage import digest, put_checked, size_of
from forager.archive.warc_record import DamagedRecord, SegmentExists, StorageAway
from forager.checks import Level
from forager.doctor.machine import check_storage
from forager.errors import NotFound
from forager.images.files import image_path, open_image_files
from forager.settings import Settings
from services.buckets import SHORT_LIMITS, new_bucket
from services.servers.minio import MinIO
from services.tcp_relay import Relay

NAME = "2026/03/01/job-1-0000.warc.zst"
OTHER = "2026/03/02/job-1-0001.warc.zst"


@pytest.fixture
def url(minio: MinIO, monkeypatch: pytest.MonkeyPatch) -> str:
    return new_bucket(minio, monkeypatch)


@pytest.fixture
def storage(url: str) -> ObjectStorage:
    return open_bucket(url)


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


async def append(storage: ObjectStorage, name: str, *frames: bytes) -> list[ArchiveRef]:
    segment = storage.open_segment(name)
    refs = await segment.append(frames)
    await segment.close()
    return refs


async def test_what_is_written_is_read_listed_and_deleted(storage: ObjectStorage) -> None:
    refs = await append(storage, NAME, b"one", b"three", b"two")
    await append(storage, OTHER, b"other")
    assert [await storage.read(ref) for ref in refs] == [b"one", b"three", b"two"]
    assert await storage.size(NAME) == 11
    assert [stored.name for stored in await storage.list_segments()] == [NAME, OTHER]
    assert [stored.size for stored in await storage.list_segments("2026/03/02")] == [5]
    await storage.delete(NAME)
    await storage.delete(NAME)
    with pytest.raises(NotFound):
        await storage.read(refs[0])
    with pytest.raises(NotFound):
        await storage.size(NAME)


async def test_a_segment_is_never_written_twice(storage: ObjectStorage) -> None:
    [ref] = await append(storage, NAME, b"mine")
    with pytest.raises(SegmentExists):
        await append(storage, NAME, b"other")
    with pytest.raises(SegmentExists):
        await append(storage, NAME, noise(IN_ONE_REQUEST + 1))
    assert await storage.read(ref) == b"mine"


async def test_references_past_the_end_are_damage(storage: ObjectStorage) -> None:
    await append(storage, NAME, b"0123456789")
    for ref in (ArchiveRef(NAME, 5, 10), ArchiveRef(NAME, 50, 10)):
        with pytest.raises(DamagedRecord):
            await storage.read(ref)


async def test_large_objects_go_up_in_parts(storage: ObjectStorage) -> None:
    frames = [noise(IN_ONE_REQUEST), noise(1000)]
    refs = await append(storage, NAME, *frames)
    assert await storage.read(refs[1]) == frames[1]
    assert sha256(await storage.read(refs[0])).digest() == sha256(frames[0]).digest()


async def test_many_small_pieces_become_one_object(storage: ObjectStorage) -> None:
    pieces = [noise(50_000 + number) for number in range(200)]

    async def parts() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    await put_checked(storage, NAME, parts())
    assert await storage.size(NAME) == sum(map(len, pieces))
    assert await digest(storage, NAME) == sha256(b"".join(pieces)).digest()


async def test_an_upload_that_breaks_off_leaves_nothing(storage: ObjectStorage) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield noise(IN_ONE_REQUEST)
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError):
        await storage.put(NAME, parts())
    assert await storage.list_segments() == []


# --- trouble -------------------------------------------------------------------------------------


async def test_an_answer_that_got_lost_is_no_other_segment(
    url: str, minio: MinIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Relay(minio.port, lost=1) as relay:
        monkeypatch.setenv("AWS_ENDPOINT_URL", relay.endpoint)
        storage = open_bucket(url)
        [ref] = await append(storage, NAME, b"only once")
        assert relay.lost == 0
        assert await storage.read(ref) == b"only once"
        assert len(await storage.list_segments()) == 1


async def test_a_slow_store_is_waited_for(
    url: str, minio: MinIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = noise(200_000)
    async with Relay(minio.port, pause=0.01) as relay:
        monkeypatch.setenv("AWS_ENDPOINT_URL", relay.endpoint)
        [ref] = await append(open_bucket(url), NAME, data)
        assert await open_bucket(url).read(ref) == data


async def test_a_silent_store_is_given_up_with_an_explanation(
    url: str, minio: MinIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Relay(minio.port, silent=True) as relay:
        monkeypatch.setenv("AWS_ENDPOINT_URL", relay.endpoint)
        with pytest.raises(StorageAway) as caught:
            await open_bucket(url, SHORT_LIMITS).size(NAME)
    assert "AWS_ENDPOINT_URL" in str(caught.value)


async def test_a_killed_store_is_unavailable_and_recovers(url: str, minio: MinIO) -> None:
    storage = open_bucket(url, SHORT_LIMITS)
    [ref] = await append(storage, NAME, b"safe")
    minio.kill()
    try:
        for attempt in (
            storage.read(ref),
            storage.list_segments(),
            append(storage, OTHER, b"x"),
            storage.delete(NAME),
        ):
            with pytest.raises(StorageAway):
                await attempt
    finally:
        minio.start()
    assert await open_bucket(url).read(ref) == b"safe"


async def refused(storage: ObjectStorage) -> set[str]:
    """What is said of every kind of request; never that there is no such segment."""
    said = set()
    for attempt in (
        storage.read(ArchiveRef(NAME, 0, 1)),
        storage.size(NAME),
        storage.list_segments(),
        append(storage, NAME, b"x"),
        append(storage, OTHER, noise(IN_ONE_REQUEST + 1)),
        storage.delete(NAME),
    ):
        with pytest.raises(StorageAway) as caught:
            await attempt
        said.add(caught.value.message.partition(": ")[2].partition(" (")[0])
    return said


async def test_wrong_keys_are_named_as_such(
    url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert await refused(open_bucket(url)) == {"the object store refuses"}
    check = await check_storage(settings.model_copy(update={"archive_url": url}))
    assert check.level is Level.FAIL
    assert "refuses (SignatureDoesNotMatch)" in check.message
    assert "AWS_SECRET_ACCESS_KEY" in str(check.next_step)


async def test_a_missing_bucket_is_no_missing_segment(
    minio: MinIO, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_bucket(minio, monkeypatch)
    url = "s3://does-not-exist/folder"
    assert await refused(open_bucket(url)) == {"the bucket does not exist"}
    bucketed = settings.model_copy(update={"archive_url": url})
    with pytest.raises(StorageAway):
        await open_image_files(bucketed).size(image_path(bytes(32), "png"))
    check = await check_storage(bucketed)
    assert check.level is Level.FAIL
    assert "bucket does not exist" in check.message


# --- images --------------------------------------------------------------------------------------


async def test_images_are_kept_beside_the_archive(url: str, settings: Settings) -> None:
    bucketed = settings.model_copy(update={"archive_url": url})
    files = open_image_files(bucketed)
    data = noise(IN_ONE_REQUEST + 1)
    path = image_path(sha256(data).digest(), "png")
    assert await size_of(files, path) is None
    await files.put_all(path, data)
    await files.put_all(path, data)
    assert (await size_of(files, path), await files.read_all(path)) == (len(data), data)
    # the archive next to it does not take it for a segment
    assert await open_bucket(url).list_segments() == []
    await files.delete(path)
    with pytest.raises(NotFound):
        await files.read_all(path)
    assert (await check_storage(bucketed)).level is Level.OK
