"""A search sees one published generation, also over several pages."""

from __future__ import annotations

import asyncio

import pytest

from documents.searching import Look, headings, numbered
from forager.db.database import Database
from forager.documents import publication
from forager.documents.search import Hit
from forager.errors import InvalidInput, NotFound
from search_corpus import Corpus


async def test_only_what_is_published_is_found(corpus: Corpus, look: Look) -> None:
    await corpus.build("docs.example", {"/a": [("Draft", "needle")]})
    page = await look("needle")
    assert (page.items, page.note) == ([], "Nothing has been published yet.")
    await corpus.publish("docs.example", {"/a": [("First", "needle")], "/b": [("Same", "needle")]})
    assert set(headings(await look("needle"))) == {"First", "Same"}
    await corpus.publish("docs.example", {"/a": [("Second", "needle")], "/b": [("Same", "needle")]})
    assert set(headings(await look("needle"))) == {"Second", "Same"}


async def test_a_rollback_is_seen_at_once(corpus: Corpus, look: Look, database: Database) -> None:
    await corpus.publish("docs.example", {"/a": [("First", "needle")]})
    await corpus.publish("docs.example", {"/a": [("Second", "needle")]})
    await publication.roll_back(database, "docs.example")
    assert headings(await look("needle")) == ["First"]


async def test_a_deleted_source_is_not_found(corpus: Corpus, look: Look) -> None:
    await corpus.publish("a.example", {"/a": [("Gone", "needle")]})
    await corpus.publish("b.example", {"/a": [("Here", "needle")]})
    page = await look("needle", limit=1)
    await corpus.delete("a.example")
    assert headings(await look("needle")) == ["Here"]
    with pytest.raises(NotFound):
        await look("needle", source="a.example")
    with pytest.raises(InvalidInput, match="gone"):
        await look("needle", limit=1, cursor=page.next_cursor)


async def test_pages_have_no_duplicates_and_no_gaps_while_others_are_published(
    corpus: Corpus, look: Look
) -> None:
    await corpus.publish("a.example", numbered(0, 40))
    await corpus.publish("b.example", numbered(100, 120), config="german")
    everything = await look("needle", limit=100)
    assert len(everything.items) == 60
    seen: list[Hit] = []
    cursor = None
    for round_ in range(100):
        page = await look("needle", limit=7, cursor=cursor)
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
        await corpus.publish("a.example", numbered(1000 * round_ + 200, 1000 * round_ + 204))
    assert [hit.url for hit in seen] == [hit.url for hit in everything.items]
    scores = [hit.score for hit in seen]
    assert scores == sorted(scores, reverse=True)
    assert len((await look("needle", limit=100)).items) == 24


async def test_readers_see_one_generation_and_never_a_mix(
    corpus: Corpus, look: Look, database: Database
) -> None:
    for name in ("even", "odd"):
        await corpus.publish("a.example", {f"/{n}": [(f"{name} {n}", "needle")] for n in range(10)})

    async def publish() -> None:
        for number in [1, 2] * 15:
            await publication.publish(database, "a.example", number)

    publishing = asyncio.create_task(publish())
    looks = 0
    while not publishing.done():
        page = await look("needle", limit=100)
        assert len(page.items) == 10
        assert len({hit.heading.split()[0] for hit in page.items}) == 1
        looks += 1
    await publishing
    assert looks


async def test_cursors_that_are_not_ours(corpus: Corpus, look: Look, database: Database) -> None:
    await corpus.publish("a.example", numbered(0, 9))
    page = await look("needle", limit=2)
    assert page.next_cursor
    for cursor in ("", "x", "%%%", page.next_cursor[:-6], "A" * 200_000, "é"):
        with pytest.raises(InvalidInput, match="not one that a search gave"):
            await look("needle", limit=2, cursor=cursor)
    with pytest.raises(InvalidInput, match="another search"):
        await look("other", limit=2, cursor=page.next_cursor)
    with pytest.raises(InvalidInput, match="another search"):
        await look("needle", path="/1", limit=2, cursor=page.next_cursor)


async def test_a_cursor_cannot_name_what_was_never_published(
    corpus: Corpus, look: Look, database: Database
) -> None:
    from forager.documents.search.hit import encode_cursor

    await corpus.publish("a.example", numbered(0, 9))
    hidden = await corpus.build("a.example", numbered(50, 60))
    forged = encode_cursor(((hidden,), 0), "needle", None, None, None, None)
    with pytest.raises(InvalidInput, match="gone"):
        await look("needle", cursor=forged)


async def test_a_name_finds_all_its_versions_and_a_label_only_one(
    corpus: Corpus, look: Look
) -> None:
    for label in ("python@3.12", "python@3.13"):
        await corpus.publish(label, {"/gather": [("gather", f"Runs tasks in {label}.")]})
    await corpus.publish("pythonic", {"/gather": [("gather", "Another site.")]})
    both = await look("gather", source="python")
    assert {hit.source_id for hit in both.items} == {"python@3.12", "python@3.13"}
    one = await look("gather", source="python@3.13")
    assert [hit.source_id for hit in one.items] == ["python@3.13"]
    with pytest.raises(NotFound):
        await look("gather", source="pyth")


async def test_an_older_generation_is_searched_by_its_number(corpus: Corpus, look: Look) -> None:
    await corpus.publish("manual.example", {"/a": [("Sockets", "They close themselves.")]})
    await corpus.publish("manual.example", {"/a": [("Sockets", "Close them by hand.")]})
    now = (await look("sockets", source="manual.example")).items[0]
    assert (now.generation, now.snippet) == (2, "Sockets: Close them by hand.")
    then = (await look("sockets", source="manual.example", generation=1)).items[0]
    assert (then.generation, then.snippet) == (1, "Sockets: They close themselves.")
    with pytest.raises(NotFound):
        await look("sockets", source="manual.example", generation=3)
    with pytest.raises(InvalidInput):
        await look("sockets", generation=1)
