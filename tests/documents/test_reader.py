"""Reading pages: lists that stay in one generation, pages put together again, single sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from built_site import BASE, SOURCE, Crawls
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents.page import SectionRow
from forager.documents.publication import publish
from forager.documents.reader import (
    as_markdown,
    list_documents,
    read_page,
    requested_sections,
    section_of,
)
from forager.documents.sources import delete_source
from forager.errors import InvalidInput, NotFound
from forager.extract.composition import extract_document
from forager.extract.sections import Section


async def test_a_cursor_stays_in_its_generation(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "old a", "b": "old b", "c": "old c"})
    first = await list_documents(database, SOURCE, limit=2)
    await crawls.crawl({"a": "new a", "aa": "new aa", "b": "new b", "c": "new c"})
    rest = await list_documents(database, SOURCE, limit=2, cursor=first.next_cursor)
    titles = [item.title for item in [*first.items, *rest.items]]
    assert titles == ["Title of old a", "Title of old b", "Title of old c"]
    assert rest.next_cursor is None
    newest = await list_documents(database, SOURCE)
    assert [item.path for item in newest.items] == ["/a", "/aa", "/b", "/c"]


async def test_lists_go_by_path_and_can_be_of_a_part(crawls: Crawls, database: Database) -> None:
    await crawls.crawl(
        {"guide/b": "1", "guide/a": "2", "guidebook": "3", "api": "4", "guide/%": "5"}
    )
    below = await list_documents(database, SOURCE, path="/guide/")
    assert [item.path for item in below.items] == ["/guide/%", "/guide/a", "/guide/b"]
    assert (await list_documents(database, SOURCE, path="/guide/%")).items == below.items[:1]


async def test_paths_longer_than_an_index_entry(crawls: Crawls, database: Database) -> None:
    long = "x" * 5000
    site: dict[str, str | None] = {long + str(n): str(n) for n in range(5)}
    await crawls.crawl(site)
    seen: list[str] = []
    cursor = None
    while True:
        listed = await list_documents(database, SOURCE, path="/" + long, cursor=cursor, limit=2)
        seen += [item.path[1:] for item in listed.items]
        cursor = listed.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(site)


async def test_nothing_published_is_an_empty_list(crawls: Crawls, database: Database) -> None:
    with pytest.raises(NotFound):
        await list_documents(database, SOURCE)
    await crawls.start()
    assert (await list_documents(database, SOURCE)).items == []


async def test_a_cursor_whose_generation_is_gone_says_so(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": "a", "b": "b"})
    first = await list_documents(database, SOURCE, limit=1)
    await delete_source(database, SOURCE)
    with pytest.raises(InvalidInput, match="expired"):
        await list_documents(database, SOURCE, cursor=first.next_cursor)


@pytest.mark.parametrize(
    "cursor", ["x", "bm8=", "W10=", "WyJhIiwxLDJd", "é", "WzEsIngiLDFlOTld", "WzEsInhcdTAwMDAiLDFd"]
)
async def test_a_cursor_that_no_list_gave_is_refused(
    crawls: Crawls, database: Database, cursor: str
) -> None:
    await crawls.crawl({"a": "a"})
    with pytest.raises(InvalidInput, match="cursor"):
        await list_documents(database, SOURCE, cursor=cursor)


async def test_a_page_is_put_together_from_its_sections(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "alpha"})
    read = await read_page(database, BASE + "a#details")
    assert read.markdown == (
        "# Guide\n\nAbout alpha.\n\n## Details\n\nFirst line\nalpha\nlast line\n"
    )
    details = section_of(read, "#details")
    assert [section.heading for section in details] == ["Details"]
    assert section_of(read, "Guide") == read.sections
    assert section_of(read, "#a%20place") == details
    with pytest.raises(NotFound, match="no section") as refused:
        section_of(read, "elsewhere")
    assert str(refused.value.hint) == "Sections: Guide, Details"
    twice = replace(read.sections[1], anchor="more")
    with pytest.raises(NotFound) as refused:
        section_of(replace(read, sections=[*read.sections, twice]), "elsewhere")
    assert str(refused.value.hint) == "Sections: Guide, Details #details, Details #more"


async def test_a_page_that_two_sources_have(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "first"})
    crawls.source = "a part"
    await crawls.crawl({"a": "second"})
    mine = await read_page(database, BASE + "a", source_id=SOURCE)
    assert mine.document.title == "Title of first"
    other = await read_page(database, BASE + "a", source_id="a part")
    assert other.document.title == "Title of second"
    with pytest.raises(NotFound):
        await read_page(database, BASE + "a", source_id="another")
    with pytest.raises(NotFound):
        await read_page(database, BASE + "b")
    with pytest.raises(InvalidInput):
        await read_page(database, "ftp://example.org/")


async def test_reading_follows_what_is_published(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "one"})
    await crawls.crawl({"a": "two"})
    await publish(database, SOURCE, 1)
    assert (await read_page(database, BASE + "a")).document.title == "Title of one"


def stored(sections: Sequence[Section]) -> list[SectionRow]:
    ids = [new_id() for _ in sections]
    return [
        SectionRow(ids[s.position], None if s.parent is None else ids[s.parent], s.heading,
                   s.level, s.anchor, s.content, s.position)
        for s in sections
    ]  # fmt: skip


def test_what_extraction_took_apart_is_put_together_again() -> None:
    html = (
        "<main><p>Before.</p><h1>One</h1><p>Text.</p><h2 id=two>Two</h2><pre>code</pre>"
        "<h2>Large</h2>" + "<p>many words</p>" * 40_000 + "<h3>After</h3><p>End.</p></main>"
    )
    document = extract_document(html, BASE, title="Title")
    assert document is not None
    assert len(document.sections) > 5
    assert as_markdown(stored(document.sections)) == document.markdown.rstrip("\n") + "\n"


async def test_the_generation_without_a_page_is_named(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "a"})
    await crawls.crawl({"a": "a", "b": "b"})
    assert (await read_page(database, BASE + "b", source_id=SOURCE, generation=2)).sections
    with pytest.raises(NotFound, match=f"{BASE}b in generation 1 of {SOURCE}"):
        await read_page(database, BASE + "b", source_id=SOURCE, generation=1)


async def test_a_url_with_an_anchor_reads_its_section(crawls: Crawls, database: Database) -> None:
    await crawls.crawl({"a": "alpha"})
    page = await read_page(database, f"{BASE}a#details")

    def read(anchor: str, name: str | None = None) -> list[str]:
        found = requested_sections(page, f"{BASE}a{anchor}", name)
        return [section.heading for section in found]

    assert read("#details") == read("#a%20place") == ["Details"]
    assert read("") == read("#") == read("#/route") == ["Guide", "Details"]
    assert read("#details", "Guide") == ["Guide", "Details"]
