"""Sites that change between crawls, and what readers see of each generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crawl.crawling import Crawled, Crawls
from forager.documents.diff import Diff
from forager.documents.generation import Generation, Source
from forager.documents.reader import list_documents
from forager.documents.sources import get_source, list_generations
from servers.site import Answer, Page, Site, html, tagged

SOURCE = "docs"
HANGING = Page(b"", hangs=True)
# long enough to be compared
TWIN = "A page that is there under two names, word for word"


def menu(targets: Iterable[str]) -> str:
    """Links that are not part of what a page says."""
    return "<nav>" + " ".join(f'<a href="{each}">{each}</a>' for each in targets) + "</nav>"


def site_of(texts: Mapping[str, str]) -> dict[str, Answer]:
    """A home page that leads to pages with these texts; all of them have an ETag."""
    home = html("Home", body=menu(texts))
    pages = {path: html(text, body=menu(["/"])) for path, text in texts.items()}
    return {path: tagged(page) for path, page in {"/": home, **pages}.items()}


def numbered(count: int, text: str = "page") -> dict[str, str]:
    return {f"/p{number}": f"{text} {number}" for number in range(count)}


async def crawl(crawls: Crawls, site: Site, **options: Any) -> Crawled:
    return await crawls.run(f"{site.url}/", source=SOURCE, **options)


async def published(crawls: Crawls, source_id: str = SOURCE) -> dict[str, tuple[str, bytes]]:
    """Path -> title and content of every page that readers see."""
    listed = await list_documents(crawls.database, source_id, limit=1000)
    return {
        each.url.split("/", 3)[3]: (each.title or "", each.content_hash) for each in listed.items
    }


async def generations(crawls: Crawls) -> list[Generation]:
    """The oldest first."""
    return (await list_generations(crawls.database, SOURCE)).items[::-1]


async def source(crawls: Crawls) -> Source:
    return await get_source(crawls.database, SOURCE)


def paths(diff: Diff, site: Site) -> dict[str, list[str]]:
    return {
        name: [page.url.removeprefix(site.url) for page in getattr(diff, name)]
        for name in ("added", "removed", "changed")
    }


async def rows(crawls: Crawls) -> tuple[int, ...]:
    """How much is stored of documents."""
    [counts] = await crawls.sql(
        """
        SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM sections),
               (SELECT count(*) FROM section_search), (SELECT max(id) FROM documents)
        """
    )
    return tuple(counts)
