"""The processes of a pool: started by the first page, and updated with every seed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from forager.crawl.extraction.pool import ExtractionPool, PageExtractor
from forager.fetch.response import Response, Timing
from forager.processes import sandbox
from forager.processes.sandbox import SandboxLimits

pytestmark = pytest.mark.usefixtures("own_sandboxes")

HOME = "http://a.example/"
PAGE = b"<title>A</title><main><p>Text <a href=/b>b</a> <a href=http://other.example/c>c</a></p></main>"


def response(url: str = HOME) -> Response:
    headers = CIMultiDictProxy(CIMultiDict({"Content-Type": "text/html"}))
    timing = Timing(None, None, 0.0, 0.0)
    return Response(url, 200, "OK", headers, PAGE, len(PAGE), timing, "127.0.0.1", "1.1")


@asynccontextmanager
async def opened(processes: int = 1) -> AsyncIterator[PageExtractor]:
    async with ExtractionPool(SandboxLimits(processes=processes)) as pool:
        yield pool.extractor(seeds=(HOME,), scope="host", agent="forager")


async def test_processes_start_with_the_first_page_and_end_with_the_pool() -> None:
    before = set(psutil.Process().children())
    async with opened(2) as pool:
        assert set(psutil.Process().children()) == before
        facts = await asyncio.gather(*(pool.extract(response()) for _ in range(3)))
        assert [each.title for each in facts] == ["A"] * 3
        assert len(set(psutil.Process().children()) - before) == 2
    assert set(psutil.Process().children()) == before


async def test_a_seed_that_comes_while_processes_start_counts() -> None:
    async with opened() as pool:
        first = asyncio.create_task(pool.extract(response()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # the process is being started
        pool.add_seed("http://other.example/")
        await first
        facts = await pool.extract(response("http://a.example/again"))
        assert facts.links.urls.split() == [b"http://a.example/b", b"http://other.example/c"]
        assert not facts.out_of_scope


async def test_a_visit_that_leaves_does_not_stop_the_start() -> None:
    async with opened() as pool:
        leaving = asyncio.create_task(pool.extract(response()))
        staying = asyncio.create_task(pool.extract(response()))
        await asyncio.sleep(0)
        leaving.cancel()
        assert (await staying).title == "A"


async def test_crawls_share_processes_and_keep_their_parameters() -> None:
    before = set(psutil.Process().children())
    async with ExtractionPool(SandboxLimits()) as pool:
        one = pool.extractor(seeds=(HOME,), scope="host", agent="forager")
        both = pool.extractor(seeds=(HOME, "http://other.example/"), scope="host", agent="forager")
        for _ in range(2):
            assert (await one.extract(response())).out_of_scope == {"other_host": 1}
            assert not (await both.extract(response())).out_of_scope
        [process] = set(psutil.Process().children()) - before
        process.kill()  # the next one learns the parameters again
        assert (await one.extract(response())).out_of_scope == {"other_host": 1}
        assert not (await both.extract(response())).out_of_scope
        one.close()
        assert not (await both.extract(response())).out_of_scope
        assert pool.waiting == 0


async def test_parameters_that_were_dropped_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CONTEXT_BYTES", 1)
    async with ExtractionPool(SandboxLimits()) as pool:
        crawls = [
            pool.extractor(seeds=(f"http://{name}.example/",), scope="host", agent="forager")
            for name in ("a", "other", "third")
        ]
        for _ in range(2):
            facts = [await crawl.extract(response()) for crawl in crawls]
            assert [len(each.links) for each in facts] == [1, 1, 0]
