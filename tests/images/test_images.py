"""Images are fetched politely, looked into carefully, and stored once."""

from __future__ import annotations

import asyncio
import io
import os
import struct
import sys
import zlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from forager.archive.objects import open_bucket
from forager.db.database import Database
from forager.errors import GiveUp, InvalidInput, NotFound
from forager.extract.product.record import ProductImage
from forager.fetch.polite import Fetching
from forager.images import fetcher
from forager.images.fetcher import ImageFetcher, Inspection
from forager.images.files import (
    IMAGE_FILES,
    ImageFiles,
    delete_unused_files,
    image_files_at,
    image_path,
    open_image_files,
)
from forager.images.inspector import Refused, inspect
from forager.images.recording import record_images
from forager.images.store import images as store
from forager.processes.sandbox import SandboxLimits
from forager.products.lookup import find_image
from forager.products.service import show_product
from forager.products.writer import touch_unchanged
from forager.settings import Settings
from products.rows import add_product, insert_domain
from servers.site import Page, Site, moved, text
from support.waiting import lock_waited_for


def picture(kind: str = "JPEG", size: tuple[int, int] = (64, 48), colour: int = 200) -> bytes:
    # not of one colour: a file that is cut off shall miss something
    image = Image.effect_noise(size, 50).convert("RGB")
    image.putpixel((0, 0), (colour, 0, 0))
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    """A small file that says it is huge."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b""))
    )


SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'
HTML = b"<!DOCTYPE html><html><title>Not found</title></html>"


# --- looking into files ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "media_type", "extension"),
    [
        ("JPEG", "image/jpeg", "jpg"),
        ("PNG", "image/png", "png"),
        ("GIF", "image/gif", "gif"),
        ("WEBP", "image/webp", "webp"),
        ("AVIF", "image/avif", "avif"),
        ("BMP", "image/bmp", "bmp"),
    ],
)
def test_images_of_known_formats_are_measured(kind: str, media_type: str, extension: str) -> None:
    assert inspect(picture(kind)) == {
        "media_type": media_type,
        "extension": extension,
        "width": 64,
        "height": 48,
    }


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "AVIF", "BMP"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.95])
def test_what_is_cut_off_is_refused(kind: str, share: float) -> None:
    data = picture(kind)
    with pytest.raises(Refused):
        inspect(data[: int(len(data) * share)])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (SVG, "SVG"),
        (b"\xef\xbb\xbf  " + SVG, "SVG"),
        (HTML, "web page"),
        (b"MZ\x90\x00", "not an image"),
        (b"\xff\xd8\xff" + HTML, "broken"),
        (b"GIF89a" + SVG, "broken"),
        (b"\x89PNG\r\n\x1a\n", "broken"),
        (png_of_size(0, 10), "broken|no pixels"),
        (png_of_size(10_000, 10_000), "too large"),
        (png_of_size(2**31 - 1, 2**31 - 1), "too large"),
        (png_of_size(40_000, 1), "too large"),
    ],
)
def test_what_is_no_image_is_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        inspect(data)
    assert "0x" not in str(refused.value)


async def test_a_decoder_that_takes_too_much_costs_one_image() -> None:
    # 36 million pixels in a few kilobytes: within the limits of size, not of memory
    file = io.BytesIO()
    Image.new("RGB", (6000, 6000)).save(file, "PNG")
    inspection = Inspection(SandboxLimits(seconds=30, memory_mb=128))
    try:
        with pytest.raises(GiveUp, match="the image cannot be read: it needs more than 128 MB"):
            await inspection.inspect(file.getvalue())
        assert (await inspection.inspect(picture())).width == 64
    finally:
        await inspection.close()


# --- files -----------------------------------------------------------------------------------


async def test_files_are_written_whole_and_read_again(tmp_path: Path) -> None:
    files = image_files_at(tmp_path)
    path = image_path(sha256(b"x").digest(), "png")
    assert await files.size(path) is None
    await files.write(path, b"x")
    await files.write(path, b"x")

    assert (await files.size(path), await files.read(path)) == (1, b"x")
    assert [found.name for found in (tmp_path / path).parent.iterdir()] == [Path(path).name]
    (tmp_path / path).with_name(f".{Path(path).name}.12345678.part").write_bytes(b"left behind")
    await files.delete(path)
    await files.delete(path)
    assert list((tmp_path / path).parent.iterdir()) == []
    with pytest.raises(NotFound):
        await files.read(path)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "images/../../x", "images/ab/cd/" + "0" * 64 + ".jpg/..", "images"]
)
async def test_a_path_leads_nowhere_else(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidInput):
        await image_files_at(tmp_path).read(path)


async def test_a_bucket_holds_images_too() -> None:
    # a store of the same library that needs no server
    files = ImageFiles(open_bucket("memory:///", kind=IMAGE_FILES))
    path = image_path(sha256(b"x").digest(), "png")
    assert await files.size(path) is None
    await files.write(path, b"x")
    assert (await files.size(path), await files.read(path)) == (1, b"x")
    await files.delete(path)
    await files.delete(path)
    with pytest.raises(NotFound):
        await files.read(path)


# --- fetching --------------------------------------------------------------------------------


@dataclass
class Shop:
    """A shop with products, and what is known of their images."""

    database: Database
    settings: Settings
    site: Site
    domain: str = field(init=False)

    def __post_init__(self) -> None:
        self.domain = f"127.0.0.1:{self.site.port}"

    async def show(self, number: int, *paths: str) -> int:
        """A product that shows these images; its id."""
        product = await add_product(self.database, number, domain=self.domain)
        await self.show_again(product, *paths)
        return product

    async def show_again(self, product: int, *paths: str) -> None:
        images = tuple(ProductImage(f"http://{self.domain}{path}") for path in paths)
        async with self.database.transaction() as connection:
            await connection.execute("UPDATE domains SET allow_private = true")
            await record_images(connection, {product: images}, limit=100)

    async def fetch(self, **changes: Any) -> int:
        settings = self.settings.model_copy(update=changes)
        async with (
            Fetching(self.database, settings) as fetching,
            aclosing(ImageFetcher(self.database, settings, fetching)) as images,
        ):
            return await images.run_once()

    async def rows(self) -> list[dict[str, Any]]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(
                """
                SELECT status, problem, width, height, file_size, image_path, attempts,
                       next_attempt_at > now() AS waits
                  FROM images ORDER BY id
                """
            )
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]

    async def row(self) -> dict[str, Any]:
        (row,) = await self.rows()
        return row

    async def execute(self, statement: Any) -> None:
        async with self.database.connection() as connection:
            await connection.execute(statement)

    @property
    def stored(self) -> list[Path]:
        folder = self.settings.home / "archive" / "images"
        return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
async def shop(database: Database, settings: Settings) -> AsyncIterator[Shop]:
    async with Site() as site:
        yield Shop(database, settings, site)


async def test_an_image_is_fetched_measured_and_stored(shop: Shop) -> None:
    data = picture(size=(120, 80))
    shop.site.pages["/a.jpg"] = Page(data)
    await shop.show(1, "/a.jpg")

    assert await shop.fetch() == 1

    row = await shop.row()
    digest = sha256(data).hexdigest()
    assert row == {
        "status": "stored",
        "problem": None,
        "width": 120,
        "height": 80,
        "file_size": len(data),
        "image_path": f"images/{digest[:2]}/{digest[2:4]}/{digest}.jpg",
        "attempts": 1,
        "waits": True,
    }
    assert await open_image_files(shop.settings).read(row["image_path"]) == data
    assert await shop.fetch() == 0


async def test_the_same_content_at_two_addresses_is_one_file(shop: Shop) -> None:
    data = picture("PNG")
    shop.site.pages |= {"/a.png": Page(data), "/b.jpg": Page(data)}
    await shop.show(1, "/a.png", "/b.jpg")
    await shop.fetch()

    first, second = await shop.rows()
    assert first["image_path"] == second["image_path"]
    assert first["image_path"].endswith(".png")
    assert len(shop.stored) == 1


async def test_one_address_of_many_products_is_fetched_once(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.show(2, "/a.jpg")
    await shop.fetch()
    await shop.show(3, "/a.jpg")
    await shop.fetch()

    assert [row["status"] for row in await shop.rows()] == ["stored"] * 3
    assert shop.site.hits["/a.jpg"] == 1


async def test_a_reused_file_is_as_old_as_the_one_it_was_taken_from(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    product = await shop.show(2, "/a.jpg")
    # listed long ago, and given the file of the other just now
    await shop.execute("UPDATE images SET created_at = now() - interval '40 days'")
    await shop.fetch()
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 0

    await shop.execute("UPDATE images SET fetched_at = fetched_at - interval '31 days'")
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 1
    assert shop.site.hits["/a.jpg"] == 2


async def test_files_that_were_reused_do_not_keep_others_from_looking(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    for number in (2, 3):
        await shop.execute("UPDATE images SET fetched_at = fetched_at - interval '13 hours'")
        await shop.show(number, "/a.jpg")
        await shop.fetch()

    assert shop.site.hits["/a.jpg"] == 2


async def test_an_address_is_asked_again_when_its_file_is_not_recent(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    await shop.execute("UPDATE images SET fetched_at = now() - interval '2 days'")
    shop.site.pages["/a.jpg"] = Page(picture(colour=1))
    await shop.show(2, "/a.jpg")
    await shop.fetch()

    assert shop.site.hits["/a.jpg"] == 2
    assert len(shop.stored) == 2


async def test_a_file_does_not_cross_to_a_domain_with_other_terms(shop: Shop) -> None:
    """A file from a private address is not reused for a domain that may not reach it."""
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    product = await add_product(shop.database, 2, domain="other.example")
    image = ProductImage(f"http://{shop.domain}/a.jpg")
    async with shop.database.transaction() as connection:
        await record_images(connection, {product: (image,)}, limit=100)
    await shop.fetch()

    first, second = await shop.rows()
    assert (first["status"], second["status"]) == ("stored", "refused")
    assert second["image_path"] is None
    assert "loopback" in second["problem"]


LONG_AGO = "UPDATE images SET fetched_at = now() - interval '31 days'"


async def test_a_picture_that_changed_where_it_is_replaces_the_old_one(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    product = await shop.show(1, "/a.jpg")
    await shop.fetch()
    before = await shop.row()
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 0
    await shop.execute(LONG_AGO)
    shop.site.pages["/a.jpg"] = Page(picture(size=(30, 20)))
    await shop.show_again(product, "/a.jpg")
    # until it is there, the old one is shown
    assert (await find_image(shop.database, product, 0)).path == before["image_path"]
    assert (await show_product(shop.database, str(product))).images[0].status == "stored"
    assert await shop.fetch() == 1
    after = await shop.row()
    assert (after["status"], after["width"], after["height"]) == ("stored", 30, 20)
    assert after["image_path"] != before["image_path"]


async def test_a_picture_that_is_gone_is_kept(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    product = await shop.show(1, "/a.jpg")
    await shop.fetch()
    before = await shop.row()
    await shop.execute(LONG_AGO)
    shop.site.pages["/a.jpg"] = Page(b"", "404 Not Found")
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 1
    after = await shop.row()
    assert (after["status"], after["image_path"]) == ("stored", before["image_path"])
    assert "404" in after["problem"]
    await shop.show_again(product, "/a.jpg")
    assert await shop.fetch() == 0


async def test_pictures_of_a_page_that_did_not_change_are_renewed_too(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    await shop.execute(LONG_AGO)
    async with shop.database.transaction() as connection:
        cursor = await connection.execute("SELECT crawl_task_id FROM products")
        await touch_unchanged(connection, [row[0] for row in await cursor.fetchall()])
    assert await shop.fetch() == 1
    assert shop.site.hits["/a.jpg"] == 2


HOSTILE = {
    "/empty.jpg": (b"", "empty"),
    "/page.jpg": (HTML, "web page"),
    "/drawing.jpg": (SVG, "SVG"),
    "/cut.jpg": (picture()[:-300], "broken"),
    "/bomb.jpg": (png_of_size(20_000, 20_000), "too large"),
}


async def test_hostile_files_are_refused_in_words(shop: Shop) -> None:
    for path, (body, _) in HOSTILE.items():
        shop.site.pages[path] = Page(body, headers={"Content-Type": "image/jpeg"})
    await shop.show(1, *HOSTILE)
    await shop.fetch()

    for row, (_, problem) in zip(await shop.rows(), HOSTILE.values(), strict=True):
        assert row["status"] == "refused"
        assert problem in row["problem"]
    assert shop.stored == []
    assert await shop.fetch() == 0


@pytest.mark.parametrize("path", ["/a.jpg", "/endless"])
async def test_a_file_past_the_limit_is_refused_while_it_arrives(shop: Shop, path: str) -> None:
    shop.site.pages["/a.jpg"] = Page(picture("BMP", (300, 300)))
    await shop.show(1, path)
    await shop.fetch(image_max_mb=0.1)

    row = await shop.row()
    assert row["status"] == "refused"
    assert "100,000 bytes" in row["problem"]


async def test_robots_and_private_addresses_count_for_images(shop: Shop) -> None:
    shop.site.pages |= {
        "/robots.txt": text("User-agent: *\nDisallow: /private/"),
        "/private/a.jpg": Page(picture()),
        "/away.jpg": moved("http://localhost:1/a.jpg"),
    }
    await shop.show(1, "/private/a.jpg", "/away.jpg")
    await shop.fetch()

    robots, private = await shop.rows()
    assert robots["status"] == private["status"] == "refused"
    assert "robots.txt" in robots["problem"]
    assert "loopback" in private["problem"]
    assert shop.site.hits["/private/a.jpg"] == 0


async def test_what_is_missing_has_failed(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(b"", "404 Not Found")
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    row = await shop.row()
    assert (row["status"], row["problem"]) == ("failed", "the server answered 404 Not Found")


async def test_trouble_on_the_way_is_tried_again_a_few_times(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(b"", "500 Oops")
    await shop.show(1, "/a.jpg")
    for attempt in range(1, fetcher.MAX_ATTEMPTS):
        assert await shop.fetch() == 1
        row = await shop.row()
        assert (row["status"], row["attempts"], row["waits"]) == ("pending", attempt, True)
        assert await shop.fetch() == 0
        await shop.execute("UPDATE images SET next_attempt_at = now()")
    await shop.fetch()
    assert (await shop.row())["status"] == "failed"


async def test_a_domain_that_is_switched_off_is_not_asked(shop: Shop) -> None:
    await shop.show(1, "/a.jpg")
    await shop.execute("UPDATE domains SET is_active = false")
    await shop.fetch()
    row = await shop.row()
    assert (row["status"], row["attempts"], row["waits"]) == ("pending", 0, True)
    assert "not active" in row["problem"]


async def test_two_fetchers_share_the_work(shop: Shop) -> None:
    paths = [f"/{number}.jpg" for number in range(12)]
    shop.site.pages |= {path: Page(picture(colour=n)) for n, path in enumerate(paths)}
    await shop.show(1, *paths)

    await asyncio.gather(shop.fetch(), shop.fetch())

    assert {row["status"] for row in await shop.rows()} == {"stored"}
    assert all(shop.site.hits[path] == 1 for path in paths)


async def test_a_host_whose_turn_is_over_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "HOST_TURN", -1.0)
    await shop.show(1, "/a.jpg")
    assert await shop.fetch() == 1
    row = await shop.row()
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert shop.site.hits["/a.jpg"] == 0


async def test_an_image_that_waited_long_takes_the_slot_of_a_page(shop: Shop) -> None:
    paths = ("/a.jpg", "/b.jpg")
    shop.site.pages |= {path: Page(picture(colour=n)) for n, path in enumerate(paths)}
    await shop.show(1, *paths)
    await shop.execute(
        """
        INSERT INTO crawl_tasks (domain_id, url, url_hash)
        SELECT id, 'http://due.example/', 'due' FROM domains
        """
    )
    # pages of the host are due: nothing is fetched, so that the fetcher sleeps
    assert await shop.fetch() == 0
    assert [row["waits"] for row in await shop.rows()] == [True, True]
    await shop.execute("UPDATE images SET next_attempt_at = now(), pending_since = 'yesterday'")
    assert await shop.fetch() == 1
    assert sorted(row["status"] for row in await shop.rows()) == ["pending", "stored"]


async def test_with_images_off_nothing_runs(shop: Shop) -> None:
    settings = shop.settings.model_copy(update={"images": False})
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    async with Fetching(shop.database, settings) as fetching:
        await ImageFetcher(shop.database, settings, fetching).run()
    assert shop.site.hits["/a.jpg"] == 0


async def test_a_running_fetcher_finds_what_comes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "INTERVAL", 0.01)
    shop.site.pages["/a.jpg"] = Page(picture())
    async with Fetching(shop.database, shop.settings) as fetching:
        running = asyncio.create_task(ImageFetcher(shop.database, shop.settings, fetching).run())
        await shop.show(1, "/a.jpg")
        async with asyncio.timeout(30):
            while (await shop.row())["status"] != "stored":
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


# --- crashes and clean-up --------------------------------------------------------------------


async def test_killed_after_the_file_before_the_reference_nothing_dangles(
    shop: Shop, database_url: str
) -> None:
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    environment = {
        **os.environ,
        "FORAGER_HOME": str(shop.settings.home),
        "FORAGER_DATABASE_URL": database_url,
        "FORAGER_LOG_LEVEL": "critical",
    }
    script = Path(__file__).with_name("image_fetcher_process.py")
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), env=environment)
    assert await process.wait() == -9

    assert len(shop.stored) == 1
    assert (await shop.row())["status"] == "pending"
    # as if what the dead one held had run out: its lease, and its share of the host
    await shop.execute("UPDATE images SET next_attempt_at = now()")
    await shop.execute("DELETE FROM domain_permits")
    await shop.fetch()
    assert (await shop.row())["status"] == "stored"
    assert len(shop.stored) == 1


async def test_files_without_references_are_deleted_after_a_while(shop: Shop) -> None:
    shop.site.pages |= {"/a.jpg": Page(picture()), "/b.jpg": Page(picture(colour=9))}
    product = await shop.show(1, "/a.jpg", "/b.jpg")
    await shop.fetch()
    delete = partial(delete_unused_files, shop.database, shop.settings)
    assert await delete() == 0
    image = ProductImage(f"http://{shop.domain}/b.jpg")
    async with shop.database.transaction() as connection:
        await record_images(connection, {product: (image,)}, limit=10)

    assert await delete() == 0  # a writer may be about to refer to it
    await shop.execute("UPDATE image_files SET touched_at = now() - interval '25 h'")
    assert await delete() == 1
    assert len(shop.stored) == 1
    assert (await shop.row())["status"] == "stored"


async def test_a_file_that_is_going_is_not_referred_to(shop: Shop) -> None:
    data = picture()
    shop.site.pages["/a.jpg"] = Page(data)
    await shop.show(1, "/a.jpg")
    await shop.execute(
        f"""
        INSERT INTO image_files (content_hash, path, media_type, width, height, file_size, going_at)
        VALUES ('\\x{sha256(data).hexdigest()}', '{image_path(sha256(data).digest(), "jpg")}',
                'image/jpeg', 64, 48, {len(data)}, now())
        """
    )
    await shop.fetch()
    row = await shop.row()
    assert (row["status"], row["waits"]) == ("pending", True)

    # the clean-up that died is gone on with, and the image can be had again
    assert await delete_unused_files(shop.database, shop.settings) == 1
    await shop.execute("UPDATE images SET next_attempt_at = now()")
    await shop.fetch()
    assert (await shop.row())["status"] == "stored"


async def test_one_who_slept_through_a_deletion_refers_to_nothing(shop: Shop) -> None:
    await shop.show(1, "/a.jpg")
    new = store.NewFile(b"1" * 32, image_path(b"1" * 32, "jpg"), "image/jpeg", 1, 1, 1)
    async with shop.database.connection() as connection:
        before = await store.touch_file(connection, new)
        assert before is not None
        await connection.execute("UPDATE image_files SET touched_at = now() - interval '25 h'")
        assert await delete_unused_files(shop.database, shop.settings) == 1
        # another writer has started with the same content, and has not written it yet
        after = await store.touch_file(connection, new)
        assert after is not None
        assert await store.refer(connection, [1], before) == 0


async def test_a_clean_up_waits_for_transactions_that_add_references(shop: Shop) -> None:
    await shop.show(1, "/a.jpg")
    new = store.NewFile(b"1" * 32, image_path(b"1" * 32, "jpg"), "image/jpeg", 1, 1, 1)
    async with shop.database.connection() as connection:
        key = await store.touch_file(connection, new)
        assert key is not None
        await connection.execute("UPDATE image_files SET touched_at = now() - interval '25 h'")
    async with shop.database.connection() as connection, connection.transaction():
        cursor = await connection.execute("SELECT id FROM images")
        row = await cursor.fetchone()
        assert row is not None
        assert await store.refer(connection, [row[0]], key) == 1
        cleaning = asyncio.create_task(delete_unused_files(shop.database, shop.settings))
        await lock_waited_for(shop.database)
    assert await cleaning == 0


async def test_a_domain_without_products_has_no_images(database: Database) -> None:
    async with database.connection() as connection:
        await insert_domain(connection)
        assert await store.claim_images(connection, limit=10, lease_seconds=60) == []
