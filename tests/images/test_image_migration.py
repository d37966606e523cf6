"""Image files move to another place, each compared with the hash that it is named after."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from forager.archive.local import LocalStorage
from forager.archive.storage import Storage, size_of
from forager.archive.warc_record import ArchiveError
from forager.db.database import Database
from forager.errors import NotFound
from forager.extract.product.product import ProductImage
from forager.images.files import IMAGE_FILES, image_files_at, image_path, open_image_files
from forager.images.migration import ImageMove
from forager.images.store import images as store
from forager.images.store.images import NewFile
from forager.images.writer import record_images
from forager.settings import Settings
from products.rows import add_product

PLACE = "s3://bucket/folder"


def ignore(_: int) -> None:
    """For tests that are not about progress."""


@pytest.fixture
def old(tmp_path: Path) -> Storage:
    return image_files_at(tmp_path / "old")


@pytest.fixture
def new(tmp_path: Path) -> Storage:
    return image_files_at(tmp_path / "new")


async def store_image(database: Database, files: Storage, data: bytes) -> str:
    digest = sha256(data).digest()
    path = image_path(digest, "png")
    async with database.connection() as connection:
        await store.touch_file(connection, NewFile(digest, path, "image/png", 1, 1, len(data)))
    await files.put_all(path, data)
    return path


async def test_files_are_copied_once_and_the_source_stays_until_it_may_go(
    database: Database, old: Storage, new: Storage
) -> None:
    paths = [await store_image(database, old, data) for data in (b"one", b"two")]
    there = await store_image(database, new, b"three")
    move = ImageMove(database, old, new, PLACE)
    assert await move.count() == 3

    moved = await move.run(ignore)

    assert (moved.copied, moved.bytes, moved.found, moved.missing) == (2, 6, 1, [])
    assert [await old.read_all(path) for path in paths] == [b"one", b"two"]
    assert (await move.run(ignore)).copied == 0
    assert await move.delete_source() == 2
    assert [await new.read_all(path) for path in (*paths, there)] == [b"one", b"two", b"three"]
    assert await size_of(old, paths[0]) is None


async def test_a_file_that_is_not_what_it_should_be_is_named_if_images_have_it(
    database: Database, old: Storage, new: Storage
) -> None:
    path = await store_image(database, old, b"good")
    await old.put_all(path, b"evil")
    move = ImageMove(database, old, new, PLACE)
    assert (await move.run(ignore)).missing == []
    product = await add_product(database, 1)
    async with database.transaction() as connection:
        shown = (ProductImage("https://shop.example/a.png"),)
        await record_images(connection, {product: shown}, limit=10)
        await connection.execute("UPDATE images SET content_hash = %s", (sha256(b"good").digest(),))
    assert (await move.run(ignore)).missing == [path]
    assert await size_of(new, path) is None


async def test_a_copy_that_arrives_altered_is_not_left(
    database: Database, old: Storage, tmp_path: Path
) -> None:
    class Altering(LocalStorage):
        async def put_all(self, name: str, data: bytes) -> None:
            await super().put_all(name, data[:-1])

    path = await store_image(database, old, b"whole")
    new = Altering(tmp_path / "broken", IMAGE_FILES)
    with pytest.raises(ArchiveError, match="did not arrive"):
        await ImageMove(database, old, new, PLACE).run(ignore)
    assert await size_of(new, path) is None
    assert await old.read_all(path) == b"whole"


async def test_two_places_act_as_one(settings: Settings, tmp_path: Path) -> None:
    moving = settings.model_copy(
        update={"archive_url": str(tmp_path / "new"), "archive_old_url": str(tmp_path / "old")}
    )
    both = open_image_files(moving)
    path = image_path(sha256(b"x").digest(), "png")
    assert await size_of(both, path) is None
    await image_files_at(tmp_path / "old").put_all(path, b"x")
    assert (await size_of(both, path), await both.read_all(path)) == (1, b"x")
    await both.put_all(path, b"x")
    await both.delete(path)
    with pytest.raises(NotFound):
        await both.read_all(path)
