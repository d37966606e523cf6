"""A job as one file that other tools read, complete or absent."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest
from structlog.testing import CapturingLogger

from archived_job import WHEN, ArchivedJob, Settled, html, key, start_job
from forager.archive.local import LocalStorage, whole_file
from forager.archive.merging import merge_segments
from forager.archive.reader import ExportReport, read_response
from forager.archive.segment import ArchiveRef, parse_ref
from forager.archive.storage import Storage, open_storage
from forager.archive.warc_record import Codec
from forager.crawl.results import export
from forager.crawl.results.export import CrawlExport, CrawlExportFormat, export_job, export_size
from forager.crawl.settlement import Outcome
from forager.crawl.store import url_lists as export_store
from forager.db.database import Database
from forager.errors import ForagerError, InvalidInput, NotAllowed, NotFound
from forager.jobs.queue import Queue
from forager.settings import Settings
from foreign_readers import by_fastwarc, by_warcio
from support.sql import execute

ROOT = "https://docs.example.org/0"
PAGES = [
    html(0),
    Settled("https://docs.example.org/1", body=b"caf\xe9", content_type="text/html; charset=latin1",
            parent=ROOT, more=(("title", "One"), ("settled_at", WHEN))),
    Settled("https://docs.example.org/logo", body=b"\x89PNG\r\n\x1a\n\0", content_type="image/png",
            parent=ROOT),
    Settled("https://docs.example.org/2", "duplicate", body=b"<p>the same", parent=ROOT,
            more=(("reason", "content"), ("duplicate_of", ROOT))),
    Settled("https://docs.example.org/3", "failed", content_type=None, parent=ROOT,
            more=(("reason", "timeout"), ("detail", "no answer for 30 s"))),
    Settled("https://docs.example.org/4", "excluded", content_type=None, parent=ROOT,
            more=(("reason", "robots"),)),
]  # fmt: skip


@pytest.fixture
def storage(settings: Settings) -> Storage:
    return open_storage(settings.home / "archive")


@pytest.fixture
async def job(database: Database, storage: Storage, queue: Queue) -> AsyncIterator[ArchivedJob]:
    job = await start_job(database, storage, queue)
    await job.settle(PAGES)
    yield job
    await job.writer.close()


async def written(job: ArchivedJob, storage: Storage, **wanted: Any) -> tuple[ExportReport, bytes]:
    file = io.BytesIO()
    exported = await export_job(job.database, storage, job.id, CrawlExport(**wanted), file)
    return exported, file.getvalue()


async def lines(job: ArchivedJob, storage: Storage, **wanted: Any) -> dict[str, dict[str, Any]]:
    _, data = await written(job, storage, format=CrawlExportFormat.JSONL, **wanted)
    rows = [orjson.loads(line) for line in data.splitlines()]
    return {row["url"].rpartition("/")[2]: row for row in rows}


async def test_every_settled_url_is_a_line(job: ArchivedJob, storage: Storage) -> None:
    rows = await lines(job, storage)
    assert sorted(rows) == ["0", "1", "2", "3", "4", "logo"]
    archive = rows["1"].pop("archive")
    content_hash = rows["1"].pop("content_hash")
    assert (await read_response(storage, parse_ref(archive))).body == PAGES[1].body
    assert len(content_hash) == 64
    assert rows["1"] == {
        "url": "https://docs.example.org/1",
        "outcome": "fetched",
        "reason": None,
        "detail": None,
        "duplicate_of": None,
        "http_status": 200,
        "depth": 1,
        "parent_url": ROOT,
        "via": "link",
        "content_type": "text/html; charset=latin1",
        "title": "One",
        "size": 4,
        "settled_at": "2026-03-01T12:30:15.123456Z",
    }
    assert rows["2"]["duplicate_of"] == ROOT
    assert (rows["3"]["reason"], rows["3"]["detail"]) == ("timeout", "no answer for 30 s")
    assert rows["0"]["parent_url"] is None
    assert rows["4"]["archive"] is None


async def test_bodies_are_text_and_only_text(job: ArchivedJob, storage: Storage) -> None:
    rows = await lines(job, storage, body=True)
    assert "ä ö ü" in rows["0"]["body"]
    assert rows["1"]["body"] == "café"
    assert rows["logo"]["body"] is None
    assert rows["3"]["body"] is None


async def test_only_some_outcomes(job: ArchivedJob, storage: Storage) -> None:
    rows = await lines(job, storage, outcomes=(Outcome.FAILED, Outcome.EXCLUDED))
    assert sorted(rows) == ["3", "4"]
    wanted = CrawlExport(format=CrawlExportFormat.WARC, outcomes=(Outcome.DUPLICATE,))
    assert await export_size(job.database, job.id, wanted) == 1
    _, data = await written(
        job, storage, format=CrawlExportFormat.WARC, outcomes=(Outcome.DUPLICATE,)
    )
    assert [seen.body for seen in by_warcio(data)[1:]] == [b"<p>the same"]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD, None])
async def test_independent_readers_read_the_warc_file(
    job: ArchivedJob, storage: Storage, codec: Codec | None
) -> None:
    exported, data = await written(job, storage, format=CrawlExportFormat.WARC, codec=codec)
    assert (exported.written, exported.missed) == (4, 0)
    for read in [by_fastwarc] if codec is Codec.ZSTD else [by_fastwarc, by_warcio]:
        info, *pages = read(data)
        assert f"isPartOf: {job.id}".encode() in info.body
        expected = [(page.url, page.body) for page in PAGES if page.body is not None]
        assert [(seen.url, seen.body) for seen in pages] == expected
        assert {seen.kind for seen in pages} == {"response"}


async def test_what_cannot_be_read_is_counted(
    job: ArchivedJob, storage: Storage, settings: Settings
) -> None:
    for segment in await storage.list_segments():
        await storage.delete(segment.name)
    exported, data = await written(job, storage, format=CrawlExportFormat.WARC)
    assert (exported.written, exported.missed) == (0, 4)
    assert len(by_warcio(data)) == 1
    exported, data = await written(job, storage, format=CrawlExportFormat.JSONL, body=True)
    assert (exported.written, exported.missed) == (6, 4)


async def test_a_merge_meanwhile_drops_nothing_from_a_warc_file(
    database: Database,
    storage: Storage,
    queue: Queue,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export_store, "PAGE_ROWS", 3)
    job = await start_job(database, storage, queue)
    for number in range(8):
        await job.settle([html(number)])
        await job.writer.close()
    await job.end()

    class MergedMeanwhile(LocalStorage):
        merged = 0

        async def read(self, ref: ArchiveRef) -> bytes:
            self.merged += (await merge_segments(database, storage, 1_000_000)).segments
            return await super().read(ref)

    reading = MergedMeanwhile(settings.home / "archive")
    exported, data = await written(job, reading, format=CrawlExportFormat.WARC)
    assert (reading.merged, exported.written, exported.missed) == (8, 8, 0)
    assert {seen.url for seen in by_warcio(data)[1:]} == {html(n).url for n in range(8)}


async def test_a_warc_file_that_differs_from_the_count_says_so(
    job: ArchivedJob, storage: Storage, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dropped(LocalStorage):
        async def read(self, ref: ArchiveRef) -> bytes:
            await execute(job.database, "UPDATE crawl_visited SET segment = NULL RETURNING url")
            return await super().read(ref)

    log = CapturingLogger()
    monkeypatch.setattr(export, "log", log)
    monkeypatch.setattr(export_store, "PAGE_ROWS", 1)
    await written(job, storage, format=CrawlExportFormat.WARC)
    assert log.calls == []
    await written(job, Dropped(settings.home / "archive"), format=CrawlExportFormat.WARC)
    [said] = log.calls
    assert (said.kwargs["expected"], said.kwargs["found"]) == (4, 1)


@pytest.mark.parametrize("body", [False, True])
async def test_parquet(job: ArchivedJob, storage: Storage, body: bool) -> None:
    exported, data = await written(job, storage, format=CrawlExportFormat.PARQUET, body=body)
    assert exported.written == 6
    table = pyarrow.parquet.read_table(io.BytesIO(data))
    rows = {row["url"]: row for row in table.to_pylist()}
    expected = await lines(job, storage, body=body)
    assert rows["https://docs.example.org/1"].pop("settled_at") == WHEN
    assert expected["1"].pop("settled_at")
    assert rows["https://docs.example.org/1"] == expected["1"]
    assert table.column_names == list(await first_line(job, storage, body=body))


async def first_line(job: ArchivedJob, storage: Storage, **wanted: Any) -> dict[str, Any]:
    return next(iter((await lines(job, storage, **wanted)).values()))


async def test_parquet_says_what_to_install(
    job: ArchivedJob, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # how Python itself marks a module that is not there
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"pip install 'forager-crawler\[parquet\]'"):
        await written(job, storage, format=CrawlExportFormat.PARQUET)


async def test_parquet_goes_through_a_pipe(job: ArchivedJob, storage: Storage) -> None:
    reader, writer = os.pipe()
    wanted = CrawlExport(format=CrawlExportFormat.PARQUET)
    with os.fdopen(writer, "wb") as file:
        await export_job(job.database, storage, job.id, wanted, file)
    with os.fdopen(reader, "rb") as file:
        assert pyarrow.parquet.read_table(io.BytesIO(file.read())).num_rows == 6


async def test_memory_does_not_grow_with_the_job(job: ArchivedJob, storage: Storage) -> None:
    async def peak(rows: int) -> int:
        await execute(
            job.database,
            """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, depth, via, parent, detail)
            SELECT %s, sha256(n::text::bytea), 'https://docs.example.org/n/' || n, 'failed', 1,
                   'link', %s, repeat('x', 500)
              FROM generate_series(1, %s) n
            ON CONFLICT DO NOTHING
            RETURNING 1
            """,
            job.id,
            key(ROOT),
            rows,
        )
        wanted = CrawlExport(format=CrawlExportFormat.JSONL)
        with Path(os.devnull).open("wb") as file:
            tracemalloc.start()
            exported = await export_job(job.database, storage, job.id, wanted, file)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert exported.written == rows + len(PAGES)
        return peak

    few, many = await peak(3_000), await peak(30_000)
    assert many < 1.5 * few


async def test_an_empty_job_makes_an_empty_file(
    database: Database, storage: Storage, queue: Queue
) -> None:
    job = await start_job(database, storage, queue)
    assert await written(job, storage, format=CrawlExportFormat.JSONL) == (ExportReport(), b"")
    _, data = await written(job, storage, format=CrawlExportFormat.PARQUET)
    assert pyarrow.parquet.read_table(io.BytesIO(data)).num_rows == 0
    _, data = await written(job, storage, format=CrawlExportFormat.WARC)
    assert gzip.decompress(data).startswith(b"WARC/1.1")


# --- the file ------------------------------------------------------------------------------------


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with whole_file(target, overwrite=False) as file:
        file.write(b"all of it")
        assert not target.exists()
    assert target.read_bytes() == b"all of it"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_nothing_or_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(target, overwrite=True) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_files_are_not_replaced_unless_requested(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(NotAllowed, match="--force"), whole_file(target, overwrite=False):
        pass
    target.unlink()
    with pytest.raises(NotAllowed), whole_file(target, overwrite=False):
        target.write_bytes(b"written by another process")
    assert target.read_bytes() == b"written by another process"


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    with (
        pytest.raises(NotFound, match="does not exist"),
        whole_file(tmp_path / "no" / "x", overwrite=True),
    ):
        pass
    with pytest.raises(InvalidInput, match="is a folder"), whole_file(tmp_path, overwrite=True):
        pass
    with pytest.raises(ForagerError), whole_file(tmp_path / ("x" * 300), overwrite=True):
        pass


def test_a_folder_that_cannot_be_synced_has_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders that a virtual machine shares with its host cannot."""
    sync_to_disk = os.fsync

    def refuse_folders(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync_to_disk(fd)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    with whole_file(tmp_path / "x", overwrite=False) as file:
        file.write(b"whole")
    assert (tmp_path / "x").read_bytes() == b"whole"


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("real")
    with whole_file(link, overwrite=True) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        with whole_file(pipe, overwrite=False) as file:
            file.write(b"through the pipe")
        assert reader.communicate()[0] == b"through the pipe"
    assert pipe.is_fifo()
