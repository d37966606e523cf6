"""Speed of the API and the dashboard on a large database, and of enqueuing crawls.

    python -m benchmarks.bench_api [--rate 50] [--seconds 60] [--folder FOLDER]

Fills a separate embedded PostgreSQL (about 4 GB, a few minutes) in a temporary folder, or in
FOLDER, which the next run uses again; starts `forager api` as a process, prints a report and
writes it to `benchmarks/results/api.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import aiohttp
import orjson
import psycopg
import uvloop

from benchmarks.api_load import Sizes, load
from benchmarks.api_routes import Question, questions
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from benchmarks.usage import tree_cpu
from forager.access.caller import Scope
from forager.access.keys import create_key
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.logs import configure_logs

OWNER = UUID("00000000-0000-7000-8000-000000000001")
FORAGER = Path(sys.executable).parent / "forager"
GOAL_MS = 200
GOAL_POSTS = 500
# with more requests in flight than this, the server is overloaded
MOST_AT_ONCE = 200
POSTERS = 64
TIME_LIMIT = 60.0


@dataclass(slots=True)
class Answers:
    """The responses to one request."""

    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Spent:
    """Elapsed time, and processor time of the server and of PostgreSQL."""

    seconds: float
    server: float
    database: float


# --- the server -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Running:
    address: str
    pid: int
    database_pid: int


@contextlib.contextmanager
def server(folder: Path, url: str) -> Iterator[Running]:
    """`forager api` with default settings, on a free port."""
    log = folder / "api.log"
    environment = {
        "FORAGER_HOME": str(folder),
        "FORAGER_DATABASE_URL": url,
        "FORAGER_LOG_FORMAT": "json",
    }
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [FORAGER, "api", "--port", "0"], env=os.environ | environment, stderr=stderr
        )
        try:
            yield Running(_address(log, process), process.pid, _postmaster(url))
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    give_up = time.monotonic() + TIME_LIMIT
    while process.poll() is None and time.monotonic() < give_up:
        for line in log.read_bytes().splitlines():
            if b'"api listens"' in line:
                return str(orjson.loads(line)["address"])
        time.sleep(0.05)
    raise SystemExit(log.read_text())


def _postmaster(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int"
        ).fetchone()
    assert row is not None
    return int(row[0])


async def new_key(url: str) -> str:
    async with Database(url, name="bench") as database:
        made = await create_key(database, "bench", scope=Scope.ADMIN, user_id=OWNER)
    return made.text


@contextlib.asynccontextmanager
async def visitor(running: Running, key: str) -> AsyncIterator[aiohttp.ClientSession]:
    """An API client with a key that is also signed in to the dashboard."""
    async with aiohttp.ClientSession(
        running.address,
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Authorization": f"Bearer {key}", "Accept": "text/html, */*"},
        timeout=aiohttp.ClientTimeout(total=TIME_LIMIT),
    ) as session:
        form = {"key": key, "next": "/"}
        async with session.post("/sign-in", data=form, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
        session.headers["Cookie"] = cookie
        yield session


# --- a mixed load -----------------------------------------------------------------------------


async def mixed_load(
    session: aiohttp.ClientSession, asked: list[Question], rate: float, seconds: float
) -> dict[str, Answers]:
    """Send requests on schedule, whether or not earlier ones were answered."""
    answers: dict[str, Answers] = defaultdict(Answers)
    chance = random.Random(1)
    places = asyncio.Semaphore(MOST_AT_ONCE)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, question in enumerate(_shuffled(asked, int(rate * seconds), chance)):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await places.acquire()
            work = _ask(session, question.address(chance), answers[question.name], due)
            group.create_task(work).add_done_callback(lambda _: places.release())
    return answers


def _shuffled(asked: list[Question], count: int, chance: random.Random) -> Iterator[Question]:
    """All requests equally often, shuffled in each round."""
    while count > 0:
        round_ = chance.sample(asked, len(asked))[:count]
        count -= len(round_)
        yield from round_


async def _ask(session: aiohttp.ClientSession, path: str, answers: Answers, due: float) -> None:
    try:
        async with session.get(path, allow_redirects=False) as answer:
            body = await answer.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        answers.refused.append(f"{path}: {type(error).__name__}")
        return
    # from the scheduled time, so that queueing counts
    answers.seconds.append(time.perf_counter() - due)
    if answer.status != 200:
        answers.refused.append(f"{path}: {answer.status} {body[:300]!r}")


# --- crawls going in --------------------------------------------------------------------------


async def post_crawls(session: aiohttp.ClientSession, seconds: float) -> Answers:
    """Send as many as possible: each client sends its next request after each response."""
    answers = Answers()
    until = time.perf_counter() + seconds

    async def post(client: int) -> None:
        number = 0
        while (began := time.perf_counter()) < until:
            number += 1
            name = f"new-{client}-{number}-{int(began)}.example"
            order = {"urls": [f"https://{name}/"], "max_pages": 500}
            try:
                async with session.post("/api/v1/crawls", json=order) as answer:
                    body = await answer.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                answers.refused.append(f"{type(error).__name__}: {error}")
                continue
            answers.seconds.append(time.perf_counter() - began)
            if answer.status != 202:
                answers.refused.append(f"{answer.status} {body[:300]!r}")

    await asyncio.gather(*(post(client) for client in range(POSTERS)))
    return answers


# --- the report -------------------------------------------------------------------------------


async def spending(running: Running, work: Callable[[], Awaitable[object]]) -> Spent:
    before = time.perf_counter(), tree_cpu(running.pid), tree_cpu(running.database_pid)
    await work()
    after = time.perf_counter(), tree_cpu(running.pid), tree_cpu(running.database_pid)
    return Spent(*(end - start for start, end in zip(before, after, strict=True)))


def _spread(answers: Answers) -> list[str]:
    if not answers.seconds:
        return ["-", "-", "-"]
    p90 = statistics.quantiles([*answers.seconds, answers.seconds[0]], n=10, method="inclusive")[-1]
    found = (statistics.median(answers.seconds), p90, max(answers.seconds))
    return [f"{seconds * 1000:.0f}" for seconds in found]


def _tell(refused: list[str]) -> None:
    for each in refused[:3]:
        print(f"refused: {each}", file=sys.stderr)


async def measure(
    options: argparse.Namespace, running: Running, key: str, url: str, report: Report
) -> None:
    with psycopg.connect(url) as connection:
        asked = questions(connection)
    answers: dict[str, Answers] = {}
    async with visitor(running, key) as session:
        # each once, to fill caches of query plans, templates and table pages
        await mixed_load(session, asked, options.rate / 2, len(asked) / options.rate * 2)

        async def browse() -> None:
            answers.update(await mixed_load(session, asked, options.rate, options.seconds))

        read = await spending(running, browse)
        posted = Answers()

        async def post() -> None:
            nonlocal posted
            posted = await post_crawls(session, options.post_seconds)

        written = await spending(running, post)
    report_reading(report, options, asked, answers, read)
    report_posting(report, posted, written)


def report_reading(
    report: Report,
    options: argparse.Namespace,
    asked: list[Question],
    answers: dict[str, Answers],
    spent: Spent,
) -> None:
    count = sum(len(each.seconds) for each in answers.values())
    report.heading("Pages and lists, in milliseconds")
    report.text(
        f"{options.rate:g} requests per second for {options.seconds:g} s, to every page and list"
        f" in turn, with {options.jobs:,} jobs, {options.pages:,} crawled pages and"
        f" {options.products:,} products in the database. Requests are sent on schedule, whether or"
        " not earlier ones were answered, and the waiting time is counted from the scheduled time."
        f" {count / spent.seconds:.0f} requests per second were answered. Each took"
        f" {spent.server / count * 1000:.1f} ms of processor time in the server and"
        f" {spent.database / count * 1000:.1f} ms in PostgreSQL; the client runs on the same cores."
        f" Goal: every median under {GOAL_MS} ms."
    )
    for title, is_page in (("page", True), ("list", False)):
        rows = []
        for question in asked:
            if question.is_page is is_page:
                found = answers[question.name]
                _tell(found.refused)
                numbers = [str(len(found.seconds)), str(len(found.refused))]
                rows.append([f"`{question.name}`", *_spread(found), *numbers])
        report.table((title, "median", "p90", "worst", "requests", "errors"), rows)
    slow = [
        name
        for name, each in answers.items()
        if each.seconds and statistics.median(each.seconds) * 1000 >= GOAL_MS
    ]
    report.text(f"Over the goal: {', '.join(f'`{name}`' for name in slow) or 'none'}.")


def report_posting(report: Report, posted: Answers, spent: Spent) -> None:
    _tell(posted.refused)
    count = max(1, len(posted.seconds))
    report.heading("POST /api/v1/crawls")
    report.text(
        f"{POSTERS} clients, each of which sends its next request as soon as it has received a"
        f" response; every crawl has a separate source. Goal: {GOAL_POSTS}/s."
    )
    rate = count / spent.seconds
    costs = [f"{part / count * 1000:.2f}" for part in (spent.server, spent.database)]
    report.table(
        ("requests/s", "median ms", "p90 ms", "worst ms", "errors", "CPU ms server", "PostgreSQL"),
        [[f"{rate:,.0f}", *_spread(posted), str(len(posted.refused)), *costs]],
    )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--products", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--post-seconds", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, help="keep the database here for the next run")
    return parser.parse_args()


def run(options: argparse.Namespace, folder: Path) -> None:
    report = Report("The API and the dashboard, measured")
    report.text("Generated by `python -m benchmarks.bench_api`.")
    report.table(("machine", ""), describe_machine(folder))
    with join_server(folder) as use:
        schema.upgrade(use.url)
        with psycopg.connect(use.url) as connection:
            is_empty = connection.execute("SELECT FROM crawl_jobs LIMIT 1").fetchone() is None
        if is_empty:
            sizes = Sizes(options.jobs, options.pages, options.products)
            print(f"filled in {load(use.url, sizes, str(OWNER)):.0f} s", file=sys.stderr)
        key = uvloop.run(new_key(use.url))
        with server(folder, use.url) as running:
            uvloop.run(measure(options, running, key, use.url, report))
    print(report.write("api.md"), end="")


def main() -> None:
    options = parse_options()
    configure_logs("critical")
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        run(options, options.folder.resolve())
        return
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        run(options, Path(folder))


if __name__ == "__main__":
    main()
