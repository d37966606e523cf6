"""`forager crawl`, `resume` and `fetch` as processes: exit codes, words, Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from uuid import uuid4

import pytest

from forager.demo.server import demo_site
from forager.documents import checks
from forager.jobs.job import Lease, NewJob
from forager.jobs.queue import Queue
from support import cli
from support.cli import FORAGER
from support.cli import forager_process as forager


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def url() -> Iterator[str]:
    with demo_site(0) as url:
        yield url


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give at least one, or --file with some"),
        (["--file", "/dev/null"], "give at least one, or --file with some"),
        (["http://127.0.0.1/", "--max-bytes", str(10**25)], "--max-bytes must be at most"),
        (["http://127.0.0.1/", "--max-time", "-1"], "--max-time must be more than 0"),
        (["ftp://127.0.0.1/"], "URL: 'ftp://127.0.0.1/' cannot be crawled"),
    ],
)
def test_invalid_requests_are_explained_in_terms_of_the_command(
    arguments: list[str], words: str
) -> None:
    refused = cli.forager("crawl", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err


def test_a_crawl_ends_with_what_its_pages_have_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "SAMPLE_SECONDS", 60.0)
    crawled = cli.forager("crawl", url, "--source", "demo", "--allow-private", "--max-pages", "8")
    assert crawled.code == 0, crawled.err
    shown = re.search(r"(\d+) pages compared with what they show: (.+)", crawled.out + crawled.err)
    assert shown is not None
    assert int(shown[1]) >= 5
    assert re.fullmatch(r"[\d,]+ words, nothing lost", shown[2])
    # nobody waits for more pages than can be read in a second
    monkeypatch.setattr(checks, "SAMPLE_SECONDS", 0.0)
    again = cli.forager("crawl", url, "--source", "demo", "--allow-private", "--max-pages", "8")
    assert again.code == 0, again.err
    assert "compared with what they show" not in again.out + again.err


def test_forbidden_urls_have_a_separate_exit_code(url: str) -> None:
    private = cli.forager("crawl", url, "--strategy", "single", "--json")
    assert (private.code, private.json["status"]) == (4, "failed")
    assert "--allow-private" in private.json["error_message"]
    hidden = url.replace("index.html", "private/notes.html")
    forbidden = cli.forager("crawl", hidden, "--strategy", "single", "--allow-private")
    assert forbidden.code == 4, forbidden.out
    assert "Disallow: /private/" in forbidden.out
    assert "--ignore-robots" in forbidden.out
    fetched = cli.forager("fetch", url)
    assert (fetched.code, fetched.out) == (4, "")
    assert "--allow-private" in fetched.err


def test_what_was_not_published_says_how_to_publish_it(url: str) -> None:
    assert cli.forager("crawl", url, "--allow-private", "--source", "guide").code == 0
    less = cli.forager("crawl", url, "--allow-private", "--source", "guide", "--exclude", "/*")
    assert less.code == 1
    assert less.out.startswith("completed: held back: pages fell from ")
    listed = cli.forager("sources", "list")
    assert "generation 2 is held back: pages fell from " in listed.out + listed.err
    assert re.search(
        r"^generation 2: \d+ pages? · 0 added · 0 changed · \d+ removed · 0 carried", less.out, re.M
    )
    assert "forager sources publish guide --force" in less.out
    assert cli.forager("sources", "publish", "guide", "--force").code == 0


def test_a_source_whose_crawl_is_paused_says_how_to_go_on(url: str) -> None:
    job = cli.forager(
        "crawl", url, "--allow-private", "--source", "guide", "--detach", "--json"
    ).json
    assert cli.forager("jobs", "pause", job["job_id"]).code == 0
    again = cli.forager("crawl", url, "--allow-private", "--source", "guide")
    assert (again.code, again.out) == (4, "")
    assert f"forager resume {job['job_id']}" in again.err


async def test_an_old_error_is_not_why_a_crawl_is_paused(queue: Queue, url: str) -> None:
    lease = await given_to_a_dead_worker(queue, url)
    await queue.fail(lease, "an error of the first run")
    await queue.pause(lease.job_id)
    shown = forager("crawl", url, "--allow-private", "--source", "guide", "--detach")
    assert shown.out.startswith("paused\n")
    assert f"forager resume {lease.job_id}" in shown.out
    assert "a worker will run it" not in shown.out


async def test_ctrl_c_twice_leaves_a_job_that_a_dead_worker_holds(queue: Queue, url: str) -> None:
    lease = await given_to_a_dead_worker(queue, url)
    process = subprocess.Popen(
        [FORAGER, "--log-level", "info", "resume", str(lease.job_id)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        wait_for("worker started", process.stderr)
        process.send_signal(signal.SIGINT)
        wait_for("Ctrl-C again stops at once", process.stderr)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert f"resume with: forager resume {lease.job_id}" in out


async def given_to_a_dead_worker(queue: Queue, url: str) -> Lease:
    payload = {"urls": [url], "allow_private": True}
    await queue.enqueue(NewJob(kind="crawl", payload=payload, source_id="guide"))
    (job,) = await queue.claim(uuid4(), kinds=["crawl"])
    assert job.worker_id is not None
    return Lease(job.id, job.lease, job.worker_id)


def wait_for(words: str, lines: IO[str]) -> None:
    if not any(words in line for line in lines):
        pytest.fail(f"no line says {words!r}")
