"""Relevance, phrases, identifiers and filters."""

from __future__ import annotations

from uuid import uuid4

import pytest

from documents.searching import Look, headings, marked
from forager.errors import InvalidInput, NotFound
from search_corpus import Corpus, Page

MANUAL = {
    "/locks": [
        ("Explicit locking", "Deadlocks end by the server. Rows can be locked by hand."),
        ("Row locks", "A row is locked when it is updated."),
    ],
    "/vacuum": [
        ("Routine vacuuming", "Vacuum removes dead rows. It takes locks that do not hurt."),
        ("Row versions", "Every update leaves a dead version of a row."),
    ],
    "/intro": [("Introduction", "A manual about databases.")],
}


async def test_a_snippet_shows_the_heading_where_only_that_matches(
    corpus: Corpus, look: Look
) -> None:
    await corpus.publish("manual.example", MANUAL)
    [hit] = (await look("introduction")).items
    assert (hit.snippet, marked(hit)) == (
        "Introduction: A manual about databases.", ["Introduction"]
    )  # fmt: skip
    [hit] = (await look("dead version")).items[:1]
    assert hit.snippet == "Every update leaves a dead version of a row."


async def test_headings_come_before_texts(corpus: Corpus, look: Look) -> None:
    await corpus.publish("manual.example", MANUAL)
    page = await look("row locks")
    assert headings(page) == ["Row locks", "Routine vacuuming"]
    assert [section.heading for section in page.items[0].sections] == ["Explicit locking"]
    assert page.items[0].score > 2 > page.items[1].score
    assert (page.total, page.note) == (2, None)
    assert not page.capped
    assert page.next_cursor is None


async def test_a_hit_says_where_it_is_and_why(corpus: Corpus, look: Look) -> None:
    await corpus.publish("manual.example", MANUAL)
    [hit] = (await look("updated row")).items[:1]
    assert hit.url in (
        "https://manual.example/locks#part-1",
        "https://manual.example/vacuum#part-1",
    )
    assert hit.source_id == "manual.example"
    assert set(marked(hit)) <= {"row", "updated", "update"}
    assert len(set(marked(hit))) == 2


async def test_a_title_counts_as_a_heading_of_the_first_section(corpus: Corpus, look: Look) -> None:
    pages = {
        "/a": Page([("Overview", "Nothing here."), ("Details", "Less.")], title="Replication"),
        "/b": Page([("Text", "It speaks of replication, replication, replication.")]),
    }
    await corpus.publish("docs.example", pages)
    assert headings(await look("replication")) == ["Overview", "Text"]


async def test_exact_phrases(corpus: Corpus, look: Look) -> None:
    pages = {
        "/a": [("One", "the write ahead log is written first")],
        "/b": [("Two", "ahead of the log, write something")],
    }
    await corpus.publish("docs.example", pages)
    assert headings(await look('"write ahead log"')) == ["One"]
    assert headings(await look("“write ahead log”")) == ["One"]
    assert set(headings(await look("write ahead log"))) == {"One", "Two"}


async def test_without_and_or(corpus: Corpus, look: Look) -> None:
    pages = {
        "/a": [("Apples", "red fruit")],
        "/b": [("Pears", "green fruit")],
        "/c": [("Plums", "blue fruit, not red")],
    }
    await corpus.publish("docs.example", pages)
    assert headings(await look("fruit -red")) == ["Pears"]
    assert set(headings(await look("green or blue"))) == {"Pears", "Plums"}
    assert headings(await look('fruit -"blue fruit" -green')) == ["Apples"]


TYPED = {
    "asyncio.gather": {"gather"},
    "asyncio.gather()": {"gather"},
    "pg_stat_activity": {"activity"},
    "--no-verify": {"hooks"},
    '"--no-verify"': {"hooks"},
    "std::vector": {"vector"},
    "std::vector<int>": {"vector"},
    "commit --no-verify": {"hooks"},
    "verify -pg_stat_activity": {"hooks", "checks"},
}


async def test_identifiers_are_found_as_typed(corpus: Corpus, look: Look) -> None:
    pages = {
        "/a": [("gather", "Call `asyncio.gather(a, b)` to run both.")],
        "/b": [("parties", "We gather at noon. asyncio is a library.")],
        "/c": [("activity", "SELECT * FROM pg_stat_activity; verify it")],
        "/d": [("stats", "activity of the stat of pg")],
        "/e": [("hooks", "git commit --no-verify skips hooks")],
        "/f": [("checks", "commit: there is no way to verify, no.")],
        "/g": [("vector", "std::vector<int> numbers;")],
        "/h": [("maths", "a vector has a std deviation")],
    }
    await corpus.publish("docs.example", pages)
    found = {typed: set(headings(await look(typed))) for typed in TYPED}
    assert found == TYPED


async def test_a_part_of_an_identifier_is_found_when_nothing_is_written_so(
    corpus: Corpus, look: Look
) -> None:
    pages = {f"/{n}": [(f"Views {n}", "SELECT * FROM pg_stat_activity")] for n in range(3)}
    await corpus.publish("docs.example", pages)
    page = await look("pg_stat", limit=2)
    assert headings(page) == ["Views 0", "Views 1"]
    assert page.note is not None
    rest = await look("pg_stat", limit=2, cursor=page.next_cursor)
    assert headings(rest) == ["Views 2"]


async def test_names_that_are_words_are_found_as_words(corpus: Corpus, look: Look) -> None:
    await corpus.publish("docs.example", {"/a": [("One", "on github")], "/b": [("Two", "GitHub")]})
    assert set(headings(await look("GitHub"))) == {"One", "Two"}
    assert set(headings(await look("github"))) == {"One", "Two"}


async def test_identifiers_are_marked_in_the_snippet(corpus: Corpus, look: Look) -> None:
    text = "Something else. " * 60 + "Run `git commit --no-verify` and it skips them."
    await corpus.publish("docs.example", {"/e": [("Hooks", text)]})
    [hit] = (await look("--no-verify")).items
    assert marked(hit) == ["--no-verify"]


async def test_words_are_inflected_as_their_source_does(corpus: Corpus, look: Look) -> None:
    await corpus.publish("en.example", {"/a": [("Cats", "many houses")]}, config="english")
    await corpus.publish("de.example", {"/a": [("Katzen", "viele Häuser")]}, config="german")
    await corpus.publish("xx.example", {"/a": [("Words", "houses häuser")]}, config="simple")
    assert set(headings(await look("house"))) == {"Cats"}
    assert set(headings(await look("Häusern"))) == {"Katzen"}
    assert set(headings(await look("häuser"))) == {"Katzen", "Words"}
    assert set(headings(await look("houses"))) == {"Cats", "Words"}


async def test_filters_by_source_path_and_owner(corpus: Corpus, look: Look) -> None:
    ours, theirs = uuid4(), uuid4()
    await corpus.publish(
        "a.example",
        {"/guide/x": [("Guide", "needle")], "/api/v1/x": [("Api", "needle")]},
        owner=ours,
    )
    await corpus.publish("b.example", {"/guide/y": [("Other", "needle")]}, owner=theirs)
    assert len((await look("needle")).items) == 3
    assert set(headings(await look("needle", source="a.example"))) == {"Guide", "Api"}
    assert headings(await look("needle", source="a.example", path="/api/")) == ["Api"]
    assert set(headings(await look("needle", path="guide"))) == {"Guide", "Other"}
    assert headings(await look("needle", user_id=theirs)) == ["Other"]
    assert (await look("needle", path="/%")).items == []
    with pytest.raises(NotFound, match=r"c\.example"):
        await look("needle", source="c.example")
    with pytest.raises(NotFound):
        await look("needle", source="a.example", user_id=theirs)


async def test_limits_that_make_no_sense(look: Look) -> None:
    for limit in (0, -1, 101):
        with pytest.raises(InvalidInput, match="limit"):
            await look("needle", limit=limit)
