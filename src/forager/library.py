"""Forager as a library: what the command line does, in a few typed calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack
from uuid import UUID

import structlog

from forager.crawl.explain.explanation import Explanation, explain
from forager.crawl.foreground import Foreground
from forager.crawl.options import crawl_options
from forager.crawl.reports.report import CrawlReport, crawl_report
from forager.crawl.service import request_crawl
from forager.db.database import Database, open_database
from forager.documents import sources
from forager.documents.diff import Diff, diff_generations
from forager.documents.reader import as_markdown, read_page, requested_sections
from forager.documents.search import SearchPage, SearchRequest, SectionKind, search
from forager.documents.search.embedding import embedder_of
from forager.index.engine import SearchEngine, open_engine
from forager.jobs.kinds import load_kinds
from forager.jobs.queue import Queue
from forager.library_products import ProductCalls
from forager.library_sources import SourceCalls
from forager.logs import configure_logs
from forager.operations.operation import Context
from forager.settings import Origin, Settings, load_settings, origins

__all__ = ["AsyncForager", "CrawlSettings", "Forager", "open", "open_async"]

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

# of programs that use the library
LOG_LEVEL = "warning"


class CrawlSettings(TypedDict, total=False):
    """How to crawl; each is an option of `forager crawl`."""

    strategy: str
    scope: str
    include: list[str]
    exclude: list[str]
    language: str
    max_pages: int
    max_depth: int
    max_time: float
    max_bytes: int
    concurrency: int
    delay: float
    retries: int
    retry_delay: float
    user_agent: str
    headers: dict[str, str]
    proxy: str
    documents: bool
    products: bool
    folder: str
    repository: str
    ref: str
    subfolder: str
    markdown: str
    render: str
    render_urls: list[str]
    wait_for: str
    scroll: int
    hash_routes: bool
    screenshots: bool
    carry_over: int
    carry_over_days: float
    allow_private: bool
    ignore_robots: bool


class AsyncForager(SourceCalls, ProductCalls):
    """The store, for programs that run an event loop; made by `open_async`."""

    def __init__(
        self, database: Database, settings: Settings, engine: SearchEngine | None = None
    ) -> None:
        super().__init__(database, settings)
        self._engine = engine
        self._queue = Queue(database, settings)

    async def run(self, operation: str, /, **inputs: Any) -> Any:
        """Run an operation by the name of its command, such as `webhooks list`.

        The inputs are those of the API; the answer is a model with the fields of its JSON. Raises
        InvalidInput for an unknown operation, and for inputs that are not valid.

            store.run("sources schedule", source_id="flask", every="1d")
        """
        from forager.registry import find_operation  # all features, which take time to import

        found = find_operation(operation)
        return await found.run(Context(self._database, self._settings), **found.bind(inputs))

    # --- crawls ------------------------------------------------------------------------------

    async def start_crawl(
        self, *urls: str, source: str | None = None, priority: int = 0, **how: Unpack[CrawlSettings]
    ) -> CrawlReport:
        """Ask for a crawl and return at once; a worker runs it, or `wait` does.

        A source that is being crawled already answers with that crawl. Raises InvalidInput for
        options or URLs that are not valid.
        """
        asked = await request_crawl(
            self._queue,
            crawl_options({**how, "urls": urls}),
            source=source,
            priority=priority,
            max_retries=self._settings.max_retries,
        )
        return await self.report(asked.job.id)

    async def crawl(
        self, *urls: str, source: str | None = None, priority: int = 0, **how: Unpack[CrawlSettings]
    ) -> CrawlReport:
        """Crawl, and return when it has ended; the report says how.

        Pages that fail do not raise an error: the ledger of the report counts each URL once.

            report = store.crawl("https://docs.example.org/", max_pages=100, include=["/guide/*"])
            print(report.ledger.pages, report.is_held_back)
        """
        started = await self.start_crawl(*urls, source=source, priority=priority, **how)
        return await self.wait(started.job.id)

    async def refresh(self, source: str) -> CrawlReport:
        """Ask for a source to be crawled again as it was last; returns at once.

        Pages that have not changed are not transferred again, if the site supports conditional
        requests. Raises NotFound for an unknown source.
        """
        asked = await sources.refresh(self._database, self._queue, source)
        return await self.report(asked.job.id)

    async def wait(self, job_id: UUID) -> CrawlReport:
        """Run a crawl here unless a worker has it, until it has ended or is paused.

        Another call, or another process, can pause it; `wait` returns its report then as well.
        """
        return await Foreground(self._database, self._settings, job_id).run()

    async def report(self, job_id: UUID) -> CrawlReport:
        """How far a crawl is, by its last commit; raises NotFound for an unknown job."""
        return await crawl_report(self._database, self._queue, job_id)

    async def explain(self, url: str, job_id: UUID | None = None) -> Explanation:
        """The outcome of a URL and why; in one crawl, or in the latest that knows it.

        A URL that no crawl knows has the verdict `never seen`, and the rules that apply to it.
        """
        return await explain(self._database, self._queue, url, job_id=job_id)

    # --- what was crawled --------------------------------------------------------------------

    async def search(
        self,
        query: str,
        *,
        source: str | None = None,
        version: str | None = None,
        path: str | None = None,
        language: str | None = None,
        kind: SectionKind | None = None,
        limit: int = 10,
        cursor: str | None = None,
    ) -> SearchPage:
        """Published pages by their best sections; `next_cursor` continues after a page of them.

        `source` is a name with or without its version, `version` a range such as `>=3.10,<3.13`,
        and `path` the beginning of paths.

            for hit in store.search("crawl delay", source="flask", limit=3).items:
                print(hit.url, hit.heading)
        """
        request = SearchRequest(
            query=query,
            source=source,
            version=version,
            path=path,
            language=language,
            kind=kind,
            limit=limit,
            cursor=cursor,
        )
        return await search(self._database, request, self._engine, embedder_of(self._settings))

    async def read(self, url: str, *, source: str | None = None, section: str | None = None) -> str:
        """The markdown of a published page, or of one section by its anchor, heading or name.

        A URL with an anchor, as search hits have, reads the section with that anchor. Raises
        NotFound for a page that is not published, and for a section that it does not have.
        """
        page = await read_page(self._database, url, source_id=source)
        return as_markdown(requested_sections(page, url, section))

    async def diff(
        self,
        source: str,
        old: int | None = None,
        new: int | None = None,
        *,
        against: str | None = None,
        page: str | None = None,
        section: str | None = None,
        sections: bool = False,
    ) -> Diff:
        """The differences of generation `new` (default: the published one) from `old`.

        `against` is another source or version, to which `old` belongs. A page, by its URL or path,
        or a section of it is compared alone:

            store.diff("python@3.13", against="3.12", page="/3.13/library/json.html")
        """
        named = await sources.get_source(self._database, source)
        if against is not None:
            against = (await sources.get_other_source(self._database, named, against)).id
        return await diff_generations(
            self._database,
            named.id,
            old,
            new,
            against=against,
            page=page,
            section=section,
            with_sections=sections,
        )


def _blocking(
    method: Callable[Concatenate[AsyncForager, Arguments], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Forager, Arguments], Answer]:
    """The same call for programs without an event loop: it returns when the work is done."""

    @wraps(method)
    def call(self: Forager, /, *args: Arguments.args, **named: Arguments.kwargs) -> Answer:
        return self._call(lambda store: method(store, *args, **named))

    return call


class Forager:
    """The store, for programs without an event loop; made by `open`.

    Its calls may come from any thread. They run on a separate event loop, so that they also
    work where a loop is running already, as in a notebook.
    """

    def __init__(self, settings: Settings) -> None:
        self._closing = asyncio.Event()
        self._calls: set[asyncio.Task[Any]] = set()
        opened: Future[tuple[AsyncForager, asyncio.AbstractEventLoop]] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(settings, opened)), name="forager", daemon=True
        )
        self._thread.start()
        self._store, self._loop = opened.result()

    async def _serve(self, settings: Settings, opened: Future[Any]) -> None:
        try:
            async with _opened(settings) as store:
                opened.set_result((store, asyncio.get_running_loop()))
                await self._closing.wait()
                for call in self._calls:
                    call.cancel()
                await asyncio.gather(*self._calls, return_exceptions=True)
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)

    def _call(self, work: Callable[[AsyncForager], Coroutine[Any, Any, Answer]]) -> Answer:
        if not self._thread.is_alive():
            raise RuntimeError("this store is closed")
        answer = asyncio.run_coroutine_threadsafe(self._watched(work(self._store)), self._loop)
        try:
            return answer.result()
        except BaseException:
            # Ctrl-C: a crawl that runs here goes back to the queue, with all it has committed
            answer.cancel()
            raise

    async def _watched(self, work: Awaitable[Answer]) -> Answer:
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            return await work
        finally:
            self._calls.discard(task)

    def close(self) -> None:
        """Cancel running calls and close the database."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    run = _blocking(AsyncForager.run)
    start_crawl = _blocking(AsyncForager.start_crawl)
    crawl = _blocking(AsyncForager.crawl)
    refresh = _blocking(AsyncForager.refresh)
    wait = _blocking(AsyncForager.wait)
    report = _blocking(AsyncForager.report)
    explain = _blocking(AsyncForager.explain)
    search = _blocking(AsyncForager.search)
    read = _blocking(AsyncForager.read)
    diff = _blocking(AsyncForager.diff)
    sources = _blocking(AsyncForager.sources)
    publish = _blocking(AsyncForager.publish)
    roll_back = _blocking(AsyncForager.roll_back)
    apply = _blocking(AsyncForager.apply)
    export = _blocking(AsyncForager.export)
    check = _blocking(AsyncForager.check)
    track = _blocking(AsyncForager.track)
    products = _blocking(AsyncForager.products)
    history = _blocking(AsyncForager.history)
    offers = _blocking(AsyncForager.offers)
    changes = _blocking(AsyncForager.changes)
    events = _blocking(AsyncForager.events)
    add_alert = _blocking(AsyncForager.add_alert)
    alerts = _blocking(AsyncForager.alerts)
    delete_alert = _blocking(AsyncForager.delete_alert)


def open(
    *, home: Path | str | None = None, database_url: str | None = None, **settings: Any
) -> Forager:
    """The store, to be used in a `with` block or closed. Any setting can be given by its name."""
    return Forager(_settings(home=home, database_url=database_url, **settings))


@asynccontextmanager
async def open_async(
    *, home: Path | str | None = None, database_url: str | None = None, **settings: Any
) -> AsyncIterator[AsyncForager]:
    """The store for the running event loop, for as long as the block runs."""
    async with _opened(_settings(home=home, database_url=database_url, **settings)) as store:
        yield store


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[AsyncForager]:
    load_kinds(settings.job_modules)
    async with (
        open_database(settings, name="forager library") as database,
        open_engine(settings) as engine,
    ):
        yield AsyncForager(database, settings, engine)


def _settings(**given: Any) -> Settings:
    """Settings from arguments, the environment and the file; logs unless the program has some."""
    given = {name: value for name, value in given.items() if value is not None}
    if origins(given)["log_level"] is Origin.DEFAULT:
        given["log_level"] = LOG_LEVEL
    settings = load_settings(**given)
    if not structlog.is_configured():
        configure_logs(settings.log_level, settings.log_format)
    return settings
