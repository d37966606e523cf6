"""`forager archive` and `forager export`, as used at a prompt."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from archived_job import ArchivedJob, html, start_job
from forager.amounts import parse_duration, parse_size, size_text
from forager.archive.segment import ArchiveRef, job_of, parse_segment_name
from forager.archive.storage import open_storage
from forager.cli.output import reader_has_left, silence_stdout
from forager.db.database import Database
from forager.errors import InvalidInput
from forager.jobs.queue import Queue
from forager.settings import Settings
from foreign_readers import by_warcio
from support.cli import FORAGER, Finished, forager
from support.sql import execute

pytestmark = pytest.mark.usefixtures("command_line")


@pytest.fixture
def refs(database_url: str, settings: Settings) -> list[ArchiveRef]:
    """Three pages of a finished job; the commands run in separate event loops."""

    async def crawl() -> list[ArchiveRef]:
        async with Database(database_url) as database:
            job = await new_job(database, settings)
            refs = await job.settle([html(number) for number in range(3)])
            await job.end()
            return refs

    return asyncio.run(crawl())


async def new_job(database: Database, settings: Settings) -> ArchivedJob:
    storage = open_storage(settings.home / "archive")
    return await start_job(database, storage, Queue(database, settings))


def change(database_url: str, statement: str) -> None:
    async def work() -> None:
        async with Database(database_url) as database:
            await execute(database, statement)

    asyncio.run(work())


def answer(done: Finished) -> Any:
    assert done.code == 0, done.err
    return done.json


def error(done: Finished) -> tuple[int, str]:
    return done.code, done.err


def job_id_of(refs: list[ArchiveRef]) -> str:
    return str(job_of(parse_segment_name(refs[0].segment).owner))


def test_list_and_show(refs: list[ArchiveRef]) -> None:
    listed = answer(forager("archive", "list", "--json"))
    [item] = listed["items"]
    assert listed["next_cursor"] is None
    assert (item["name"], item["records"], item["references"]) == (refs[0].segment, 3, 3)
    assert answer(forager("archive", "show", refs[0].segment, "--json")) == item
    assert refs[0].segment in forager("archive", "list", "--job", job_id_of(refs)).out
    assert "closed" in forager("archive", "show", refs[0].segment).out
    assert error(forager("archive", "show", "nothing"))[0] == 2
    assert error(forager("archive", "list", "--job", "abcdef"))[0] == 2


def test_a_cut_list_says_so(refs: list[ArchiveRef], database_url: str) -> None:
    change(
        database_url,
        "INSERT INTO archive_segments (name, lease) VALUES ('2020/01/01/w-1-0000.warc.zst', 1)"
        " RETURNING name",
    )
    listed = answer(forager("archive", "list", "--limit", 1, "--json"))
    assert listed["next_cursor"] == "2020/01/01/w-1-0000.warc.zst"
    rest = answer(forager("archive", "list", "--cursor", listed["next_cursor"], "--json"))
    assert [item["name"] for item in rest["items"]] == [refs[0].segment]
    assert "--cursor" in forager("archive", "list", "--limit", 1).err


def test_read(refs: list[ArchiveRef]) -> None:
    shown = forager("archive", "read", refs[1]).out
    assert "HTTP 200 OK\nContent-Type: text/html; charset=utf-8\n" in shown
    assert shown.endswith("Text of page 1: ä ö ü")
    assert forager("archive", "read", refs[1], "--body").out.startswith("<title>Page 1")
    read = answer(forager("archive", "read", refs[1], "--json"))
    assert (read["status"], read["url"]) == (200, "https://docs.example.org/1")
    assert error(forager("archive", "read", "../../etc/passwd:0:5"))[0] == 2
    elsewhere = ArchiveRef(refs[1].segment, refs[1].offset + 1, refs[1].length)
    assert error(forager("archive", "read", elsewhere))[0] == 1


def test_verify_and_fix(refs: list[ArchiveRef], settings: Settings, database_url: str) -> None:
    assert answer(forager("archive", "verify", "--json"))["ok"]
    change(database_url, "DELETE FROM crawl_visited RETURNING url")
    change(database_url, "DELETE FROM archive_segments RETURNING name")
    path = settings.home / "archive" / refs[0].segment
    old = time.time() - 7200
    os.utime(path, (old, old))
    report = answer(forager("archive", "verify", "--json"))
    [found] = [each for each in report["findings"] if each["level"] != "ok"]
    assert (found["check"], found["examples"]) == ("orphan_segments", [refs[0].segment])
    assert report["ok"]
    code, words = error(forager("archive", "verify", "--fix"))
    assert (code, "no terminal" in words, path.exists()) == (2, True, True)
    assert "file deleted" in forager("archive", "verify", "--fix", "--yes").out
    assert not path.exists()


def test_verify_fails_when_something_is_lost(refs: list[ArchiveRef], settings: Settings) -> None:
    (settings.home / "archive" / refs[0].segment).unlink()
    result = forager("archive", "verify")
    assert result.code == 1
    assert "segments whose file is missing, and rows refer to them: 1" in result.out
    assert forager("archive", "verify", "--fix", "--yes").code == 1
    assert forager("archive", "verify").code == 0


def test_prune(refs: list[ArchiveRef], settings: Settings, database_url: str) -> None:
    path = settings.home / "archive" / refs[0].segment
    assert answer(forager("archive", "prune", "--json"))["deleted"] == []
    assert answer(forager("archive", "prune", "--older-than", "1d", "--json"))["deleted"] == []
    change(
        database_url,
        "UPDATE archive_segments SET written_at = now() - interval '40 days' RETURNING name",
    )
    planned = answer(forager("archive", "prune", "--older-than", "30d", "--dry-run", "--json"))
    assert (planned["dry_run"], planned["deleted"][0]["reason"]) == (True, "age")
    kept = forager("archive", "prune", "--max-size", "1B", "--keep-referenced", "--json")
    assert [item["reason"] for item in answer(kept)["kept"]] == ["size"]
    code, words = error(forager("archive", "prune", "--older-than", "30d"))
    assert (code, "3 responses" in words, path.exists()) == (2, True, True)
    assert forager("archive", "prune", "--older-than", "30d", "--yes").code == 0
    assert not path.exists()
    assert error(forager("archive", "prune", "--older-than", "soon"))[0] == 2


def test_verify_a_sample(refs: list[ArchiveRef], settings: Settings) -> None:
    found = answer(forager("archive", "verify", "--sample", 2, "--json"))
    assert (found["ok"], found["checks"]) == (True, 1)
    assert found["findings"][0]["message"] == "2 records of a sample can be read"
    assert "3 records of a sample" in forager("archive", "verify", "--sample", 50).out
    assert error(forager("archive", "verify", "--sample", 5, "--fix"))[0] == 2
    (settings.home / "archive" / refs[0].segment).unlink()
    broken = forager("archive", "verify", "--sample", 2, "--json")
    assert broken.code == 1
    assert json.loads(broken.out)["findings"][0]["count"] == 2


def test_prune_orphans(refs: list[ArchiveRef], settings: Settings) -> None:
    folder = settings.home / "archive"
    old, fresh = "2026/03/01/nobody-1-0000.warc.zst", "2026/03/01/nobody-1-0001.warc.zst"
    for name in (old, fresh):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    os.utime(folder / old, (0, 0))
    os.utime(folder / refs[0].segment, (0, 0))
    planned = answer(forager("archive", "prune", "--orphans", "--dry-run", "--json"))
    assert planned["orphans"] == [old]
    assert (folder / old).exists()
    assert forager("archive", "prune", "--orphans", "--yes").code == 0
    assert not (folder / old).exists()
    assert (folder / fresh).exists()
    assert (folder / refs[0].segment).exists()


def test_migrate(
    refs: list[ArchiveRef], settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "elsewhere"
    assert error(forager("archive", "migrate", "--to", "local"))[0] == 2
    assert "still read" in error(forager("archive", "migrate", "--to", new, "--delete-source"))[1]
    first = forager("archive", "migrate", "--to", new)
    assert "1 segment" in first.out
    assert "FORAGER_ARCHIVE_OLD_URL" in first.err
    assert (new / refs[0].segment).read_bytes() == (
        settings.home / "archive" / refs[0].segment
    ).read_bytes()

    monkeypatch.setenv("FORAGER_ARCHIVE_URL", str(new))
    monkeypatch.setenv("FORAGER_ARCHIVE_OLD_URL", "local")
    done = answer(forager("archive", "migrate", "--to", new, "--delete-source", "--json"))
    assert (done["complete"], done["deleted"], done["segments"]["copied"]) == (True, 1, 0)
    assert not (settings.home / "archive" / refs[0].segment).exists()
    assert answer(forager("archive", "verify", "--json"))["ok"]
    assert "can be unset" in forager("archive", "migrate", "--to", new).err

    (new / refs[0].segment).unlink()
    lost = forager("archive", "migrate", "--to", new)
    assert (lost.code, refs[0].segment in lost.out) == (1, True)
    assert "can be unset" not in lost.err


def test_migrate_names_what_is_lost(
    refs: list[ArchiveRef], settings: Settings, tmp_path: Path
) -> None:
    (settings.home / "archive" / refs[0].segment).unlink()
    result = forager("archive", "migrate", "--to", tmp_path / "elsewhere")
    assert result.code == 1
    assert refs[0].segment in result.out


def test_export_to_a_file(refs: list[ArchiveRef], tmp_path: Path) -> None:
    target = tmp_path / "pages.warc.gz"
    arguments = ("export", job_id_of(refs), "--format", "warc", "--output", target)
    result = forager(*arguments)
    assert (result.code, result.out) == (0, "")
    assert "3 records written" in result.err
    assert len(by_warcio(target.read_bytes())) == 4
    assert error(forager(*arguments))[0] == 4
    assert forager(*arguments, "--force").code == 0
    wrong = ("export", job_id_of(refs), "--format", "warc", "--output")
    assert "which kind" in error(forager(*wrong, tmp_path / "pages.zip"))[1]
    assert "does not exist" in error(forager(*wrong, tmp_path / "no" / "x.warc"))[1]
    assert error(forager(*arguments, "--body"))[0] == 2
    assert error(forager("export", "abcdef"))[0] == 2


def test_export_to_standard_output(refs: list[ArchiveRef]) -> None:
    result = forager("export", job_id_of(refs), "--outcome", "fetched", "--body")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert {row["url"][-1]: row["body"][-5:] for row in rows} == dict.fromkeys("012", "ä ö ü")
    assert forager("export", job_id_of(refs), "--outcome", "failed").out == ""


def test_an_export_that_misses_responses_says_so_and_fails(
    refs: list[ArchiveRef], settings: Settings, tmp_path: Path
) -> None:
    (settings.home / "archive" / refs[0].segment).unlink()
    result = forager("export", job_id_of(refs), "-f", "warc", "-o", tmp_path / "x.warc")
    assert result.code == 1
    assert "3 responses could not be read" in result.err


@pytest.mark.parametrize("output", ["standard output", "named pipe"])
def test_a_reader_that_has_seen_enough_is_no_error(
    refs: list[ArchiveRef], database_url: str, tmp_path: Path, output: str
) -> None:
    change(
        database_url,
        f"""
        INSERT INTO crawl_visited (job_id, url_hash, url, outcome, depth, via)
        SELECT '{job_id_of(refs)}', sha256(n::text::bytea), 'https://docs.example.org/n/' || n,
               'failed', 1, 'link'
          FROM generate_series(1, 3000) n
        RETURNING 1
        """,
    )
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        [FORAGER, "export", job_id_of(refs), "-o", pipe if output == "named pipe" else "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    with child:
        reader = pipe.open("rb") if output == "named pipe" else child.stdout
        assert reader.readline().startswith(b'{"url"')
        reader.close()
        assert (child.stderr.read(), child.wait()) == (b"", 0)


def test_closed_standard_output_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    assert reader_has_left()
    silence_stdout()


def test_a_command_without_standard_output_reports_a_broken_pipe(
    refs: list[ArchiveRef], tmp_path: Path
) -> None:
    """The broken pipe is the file that the command writes to."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [str(FORAGER), "export", job_id_of(refs), "-o", str(pipe)]
    child = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {shlex.join(command)} >&-"], stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    with child:
        pipe.open("rb").close()
        assert b"Traceback" not in child.stderr.read()


def test_amounts() -> None:
    assert parse_duration("30d").days == 30
    assert parse_duration("1.5 h").total_seconds() == 5400
    assert (parse_size("10GB"), parse_size("512MiB"), parse_size("7B")) == (10**10, 2**29, 7)
    for wrong in ("", "d", "30", "-1d", "1e9d", "99999999w", "1 fortnight"):
        with pytest.raises(InvalidInput):
            parse_duration(wrong)
    with pytest.raises(InvalidInput):
        parse_size("10 apples")
    assert [size_text(n) for n in (0, 999, 1500, 25 * 10**8)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 GB",
    ]
