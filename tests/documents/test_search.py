from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from forager.db.database import Database
from forager.documents import publication
from forager.documents.search import Hit, SearchPage, SearchRequest, search
from forager.errors import InvalidInput, NotFound
from search_corpus import Corpus, Page

Look = Callable[..., Awaitable[SearchPage]]


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@pytest.fixture
def look(database: Database) -> Look:
    async def look(query: str, **more: object) -> SearchPage:
        return await search(database, SearchRequest(query=query, **more))  # type: ignore[arg-type]

    return look


def headings(page: SearchPage) -> list[str]:
    return [hit.heading for hit in page.items]


def marked(hit: Hit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.highlights]


# --- relevance ---------------------------------------------------------------------

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


# --- filters ---------------------------------------------------------------------------


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


# --- generations -------------------------------------------------------------------------


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


def numbered(first: int, last: int, word: str = "needle") -> dict[str, Page]:
    """Pages of which every third has the word in its heading, some with equal ranks."""
    return {
        f"/{number}": Page(
            [(f"{word if number % 3 == 0 else 'page'} {number}", f"{word} " * (number % 4 + 1))]
        )
        for number in range(first, last)
    }


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


# --- hostile and odd ---------------------------------------------------------------------


NOTHING_TO_LOOK_FOR = {
    "": "No searchable words",
    "   ": "No searchable words",
    '""': "No searchable words",
    "or OR or": "No searchable words",
    "the of and": "too common",
    "& | ! ( ) : *": "too common",
    "-needle": "only words to exclude",
    "-needle or -other": "only words to exclude",
    "\0": "No searchable words",
}


async def test_queries_without_anything_to_look_for(corpus: Corpus, look: Look) -> None:
    await corpus.publish("a.example", numbered(0, 3))
    for query, words in NOTHING_TO_LOOK_FOR.items():
        page = await look(query)
        assert page.items == [], query
        assert page.note is not None
        assert words in page.note, query


ODD = [
    "needle " * 2_000,
    "needle" + "x" * 20_000,
    "needle \ud800 \udfff",
    "needle \N{PILE OF POO} \u202e \u200d",
    "needle:* & !(a | b) <-> 'c",
    'needle "unfinished',
    "needle \\ ' '' \\' --",
    "needle\x00\x01\x7f",
    "§1",
    "%s %(x)s $1 {}",
    '- -- --- -"" or',
    "\uff4e\uff45\uff45\uff44\uff4c\uff45 \ufdfd \u0663\u0664",
    "a" * 3_000 + ".b_c",
]


async def test_no_query_is_an_error(corpus: Corpus, look: Look) -> None:
    await corpus.publish("a.example", numbered(0, 3))
    for query in ODD:
        await look(query)
    page = await look("needle " * 2_000)
    assert len(page.items) == 3
    assert page.note == "Only the beginning of the query was used."


async def test_nobody_reaches_another_source_through_its_mark(corpus: Corpus, look: Look) -> None:
    await corpus.publish("a.example", numbered(0, 3))
    await corpus.publish("b.example", numbered(0, 3))
    hits = (await look("§1", source="b.example")).items
    assert {hit.source_id for hit in hits} == {"b.example"}
    assert all("1" in hit.heading for hit in hits)


HOSTILE = (
    'needle <script>alert("x")</script> <b onmouseover=x>bold</b> &lt;i&gt; \x1b[31mred\x07'
    " \u202egnp.exe <img src=x onerror=y> [link](javascript:alert(1)) \x03\x04 needle<needle>"
)


async def test_hostile_text_stays_text(corpus: Corpus, look: Look) -> None:
    page = Page([("<h1>needle</h1>\x1b[2J\u202e", HOSTILE)], anchor='"><script>')
    await corpus.publish("a.example", {"/a": page})
    [hit] = (await look("needle")).items
    assert set(marked(hit)) == {"needle"}
    assert len(hit.highlights) == 3
    assert "<script>alert" in hit.snippet
    assert not any(ord(char) < 32 or char == "\u202e" for char in hit.snippet + hit.heading)
    assert hit.heading.startswith("<h1>needle</h1>")
    assert hit.url == "https://a.example/a#%22%3E%3Cscript%3E-0"


async def test_a_text_as_long_as_a_section_can_be(corpus: Corpus, look: Look) -> None:
    words = " ".join(f"word{number}" for number in range(30_000))[: 256 * 1024 - 20]
    await corpus.publish("a.example", {"/a": [("Long", words + " needle in the end")]})
    [hit] = (await look("needle")).items
    assert marked(hit) == ["needle"]
    assert len(hit.snippet) < 300


async def test_common_words_are_capped_and_it_is_said(
    corpus: Corpus, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forager.documents.search import ranking

    await corpus.publish("a.example", numbered(0, 30))
    assert (await look("needle", limit=5)).capped is False
    monkeypatch.setattr(ranking, "TEXTS_CAP", 5)
    page = await look("needle", limit=50)
    assert page.capped
    assert len(page.items) == 15


# --- versions and generations --------------------------------------------------------


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
