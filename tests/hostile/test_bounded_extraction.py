"""Pages made to do harm, in the real process with its real limits: each ends, and the next is read.

No time is measured. The process has a limit far above what any of these pages costs, and far below
what it would cost if that grew with the square of its size: a page that is read has passed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from forager.crawl.extraction.pool import Extracted, ExtractionPool, PageExtractor
from forager.errors import ErrorKind, GiveUp
from forager.fetch.response import Response, Timing
from forager.processes.sandbox import SandboxLimits
from hostile.pages import BYTES, MANY, NESTED, HostilePage, Pages, links, markdown_runs, page, runs

HOME = "http://a.example/"
LIMITS = SandboxLimits(processes=1, seconds=90, memory_mb=1024)
# what is mapped from files is not the page's doing
LIBRARIES_MB = 200
RUN_LENGTH = 150_000

# a machine may be ten times slower than the one these were tried on
pytestmark = pytest.mark.timeout(900)


def response(given: HostilePage) -> Response:
    headers = CIMultiDictProxy(CIMultiDict({"Content-Type": given.content_type}))
    timing = Timing(None, None, 0.0, 0.0)
    return Response(
        HOME, 200, "OK", headers, given.body, len(given.body), timing, "127.0.0.1", "1.1"
    )


@asynccontextmanager
async def pool_of(limits: SandboxLimits = LIMITS) -> AsyncIterator[PageExtractor]:
    async with ExtractionPool(limits) as pool:
        yield pool.extractor(seeds=(HOME,), scope="host", agent="forager", products=True)


async def read_next(pool: PageExtractor) -> None:
    """The page after a hostile one is read as if nothing had been."""
    after = await pool.extract(response(page("<p>Text <a href=/b>b</a>")))
    assert after.title == "Hostile"
    assert after.links.urls == b"http://a.example/b"


def peak_mb(before: set[psutil.Process]) -> int:
    (process,) = set(psutil.Process().children()) - before
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.parametrize("pages", [NESTED, MANY, BYTES], ids=["nested", "many", "bytes"])
async def test_hostile_pages_are_read_within_the_limits(pages: Pages) -> None:
    before = set(psutil.Process().children())
    async with pool_of() as pool:
        for name, build in pages.items():
            extracted = await extract(pool, name, build())
            assert extracted.title in ("Hostile", "t", None), name
            await read_next(pool)
        assert peak_mb(before) <= LIMITS.memory_mb + LIBRARIES_MB


@pytest.mark.parametrize(
    ("where", "length"),
    [
        ("<p>RUN</p>", RUN_LENGTH),
        ("<div class=price>RUNb</div><dl><dt>SKU<dd>RUNb</dl>", RUN_LENGTH),
        # no more than a tag may have
        ("<li class='RUN' id='RUN' style='RUN' title='RUN'>x", 15_000),
    ],
)
async def test_no_run_of_characters_is_read_again_and_again(where: str, length: int) -> None:
    async with pool_of() as pool:
        await extract(pool, where, runs(length, where))


async def test_no_run_of_characters_in_markdown_is_read_again_and_again() -> None:
    async with pool_of() as pool:
        await extract(pool, "markdown", markdown_runs(RUN_LENGTH))


async def extract(pool: PageExtractor, name: str, given: HostilePage) -> Extracted:
    try:
        return await pool.extract(response(given))
    except GiveUp as error:
        pytest.fail(f"{name}: {error.message}")


async def test_a_page_that_needs_too_much_is_refused_with_its_cause() -> None:
    before = set(psutil.Process().children())
    limits = SandboxLimits(processes=1, seconds=90, memory_mb=200)
    async with pool_of(limits) as pool:
        with pytest.raises(GiveUp, match="it needs more than 200 MB") as refused:
            await pool.extract(response(links(1_000_000)))
        assert refused.value.kind is ErrorKind.PARSE
        await read_next(pool)
        assert peak_mb(before) <= limits.memory_mb + LIBRARIES_MB
