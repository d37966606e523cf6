"""Tasks of a small shop whose pages are in the archive, written there without any fetching."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from forager.archive import store
from forager.archive.options import archive_options
from forager.archive.warc_record import ResponseRecord, pack
from forager.archive.writer import ArchiveWriter
from forager.db.database import Database
from forager.extract.keys import url_hash
from forager.parsers import registry
from forager.settings import Settings
from products.rows import insert_domain

MODULE = str(Path(__file__).with_name("kiosk_parsers.py"))


@contextmanager
def kiosk_parsers() -> Iterator[None]:
    """The kiosk's parsers are loaded in this process, and no longer afterwards."""
    before = registry._modules
    registry.load_parsers([MODULE])
    try:
        yield
    finally:
        registry._modules = before


def item(number: int, *, was: str | None = None, more: str = "") -> bytes:
    crossed = f"<s class='was'>{was}</s>" if was else ""
    return (
        f"<!doctype html><html lang='en-gb'><title>Kiosk</title><h1>Item {number}</h1>"
        f"<p data-item='K-{number}'>{crossed} <b class='now'>£{number}.50</b></p>"
        f"<p class='maker'>Maker {number}</p>{more}"
    ).encode()


@dataclass(slots=True)
class Kiosk:
    """Archives pages and refers to them as the download stage does."""

    database: Database
    settings: Settings
    host: str = "kiosk.example"
    task_ids: list[int] = field(default_factory=list)
    _visits: Iterator[int] = field(default_factory=lambda: count(1))

    def url(self, number: int) -> str:
        return f"http://{self.host}/item/{number}"

    async def archive(self, pages: Iterable[tuple[int, bytes]]) -> None:
        pages = list(pages)
        writer = ArchiveWriter(
            archive_options(self.settings).open(), "kiosk", len(self.task_ids), self._register
        )
        frames = [pack(self._record(number, body)) for number, body in pages]
        refs = await writer.write(frames)
        await writer.close()
        async with self.database.transaction() as connection:
            domain_id = await insert_domain(connection, self.host)
            for (number, _), ref in zip(pages, refs, strict=True):
                url = self.url(number)
                cursor = await connection.execute(
                    """
                    INSERT INTO crawl_tasks (domain_id, url, url_hash, status, segment,
                                             segment_offset, segment_length)
                    VALUES (%s, %s, %s, 'downloaded', %s, %s, %s)
                    RETURNING id
                    """,
                    (domain_id, url, url_hash(url), ref.segment, ref.offset, ref.length),
                )
                row = await cursor.fetchone()
                assert row is not None
                self.task_ids.append(row[0])

    async def revisit(self, task_id: int, number: int, body: bytes) -> None:
        """Archive another page of a task, as its next visit does."""
        storage = archive_options(self.settings).open()
        writer = ArchiveWriter(storage, "revisit", next(self._visits), self._register)
        [ref] = await writer.write([pack(self._record(number, body))])
        await writer.close()
        async with self.database.connection() as connection:
            await connection.execute(
                """
                UPDATE crawl_tasks
                   SET status = 'downloaded', segment = %s, segment_offset = %s,
                       segment_length = %s, updated_at = 'yesterday'
                 WHERE id = %s
                """,
                (ref.segment, ref.offset, ref.length, task_id),
            )

    def _record(self, number: int, body: bytes) -> ResponseRecord:
        headers = [("Content-Type", "text/html; charset=utf-8")]
        return ResponseRecord(self.url(number), datetime.now(UTC), 200, headers, body, "OK")

    async def _register(self, segment: str) -> None:
        async with self.database.connection() as connection:
            await store.register_segment(connection, segment, None)


@asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[str, list[object]]]:
    """A server that must get no request: its address, and the requests it got."""
    visitors: list[object] = []

    def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitors.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"127.0.0.1:{port}", visitors
