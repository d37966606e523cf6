"""`forager sources check`: published pages are read again from the archive."""

from __future__ import annotations

from crawl.crawling import Crawls
from forager.archive.options import archive_options
from forager.checks import Topic, checks_in, run_checks
from forager.documents import checks
from forager.documents.reader import read_page, section_of
from servers.site import Page, Site, html

DEFINITION = """<h1>Tasks</h1><p>Lead.</p><dl>
<dt class=sig id="asyncio.gather">asyncio.gather()</dt>
<dd><p>Run them.</p></dd></dl><h2>Leaf</h2>"""


def page(body: str) -> Page:
    text = f"<!doctype html><title>T</title><main>{body}</main><a href='/'>home</a>"
    return Page(text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


async def test_a_source_is_checked(crawls: Crawls, site: Site) -> None:
    site.pages |= {
        "/": html("Home", body="<a href='/long'>long</a> <a href='/definitions'>definitions</a>"),
        # a row of a table stays whole
        "/long": page(
            f"<h1>Long</h1><table><tr><th>A<th>B<tr><td>a<td>{'many words ' * 3_000}</table>"
        ),
        "/definitions": page(DEFINITION),
    }
    await crawls.run(f"{site.url}/", source="docs")
    storage = archive_options(crawls.settings).open()
    pages = await checks.read_source(crawls.database, storage, "docs")
    report = await run_checks(checks_in(checks, topic=Topic.SOURCES), pages)
    assert report.ok
    assert report.findings[0].message == "3 pages of docs checked"
    [large] = report.problems
    assert (large.check, large.count) == ("large_sections", 1)
    assert large.examples == [f"{site.url}/long (Long)"]

    read = await read_page(crawls.database, f"{site.url}/definitions")
    assert [section.heading for section in read.sections] == ["Tasks", "asyncio.gather()", "Leaf"]
    assert read.markdown.endswith("## Leaf\n")
    for name in ("asyncio.gather", "#asyncio.gather", "gather", "Asyncio.Gather()"):
        assert section_of(read, name)[0].content == "Run them."
