from __future__ import annotations

from typing import Any

import pytest

from forager.db.database import Database
from forager.documents.search import SearchPage, SearchRequest, SectionKind, search
from forager.documents.search.hit import preferred_language
from forager.documents.search.score import page_names
from forager.documents.search.tsquery import closest, distance, parse_query
from search_corpus import Corpus, Page, Sections

INDEX = "\n".join(f"- [{name}](https://d.example/lib#{name})" for name in ("gather", *"abcdefghij"))
DIRECTIVES: Sections = [
    ("Core features", "What the server always has."),
    *((f"{name} Directive", f"Sets the {name.lower()} of a server.") for name in
      ("DocumentRoot", "ServerName", "ErrorLog")),
]  # fmt: skip
REPEATED = "How a generation is published after a crawl, and how to publish an older one again."
PAGES: dict[str, Any] = {
    "/index": [("Index", INDEX)],
    "/lib": Page(
        [
            ("Tasks", "Run tasks with gather, or wait for one of them."),
            ("asyncio.gather(*aws)", "Run awaitable objects concurrently."),
            ("itertools.groupby(it)", "Group consecutive elements."),
        ],
        title="asyncio",
        anchor="asyncio.part",
    ),
    "/mentions": [("Other work", "Unlike asyncio.gather, threads run at any time. DocumentRoot.")],
    "/news": [("Version 3.1.2", "The argument parser argparse was added. gather, too.")],
    "/argparse": Page([("Parser for options", "Reads the command line.")], title="argparse"),
    "/mod/core": Page(DIRECTIVES, anchor="x"),
    "/power": [("Atomic commit", "A power failure leaves the file as it was before.")],
    "/publishing": [("Publishing", REPEATED)],
    "/all": [("Publishing", REPEATED), *((f"Chapter {n}", "Text.") for n in range(4))],
    "/da/publishing": Page([("Publishing", REPEATED)], language="da"),
    "/ja": Page([("バーチャルホストの認証", "説明書")], language="ja"),
}


@pytest.fixture
async def look(database: Database) -> Any:
    await Corpus(database).publish("d.example", PAGES)

    async def look(query: str, **more: Any) -> SearchPage:
        return await search(database, SearchRequest(query=query, **more))

    return look


def paths(page: SearchPage) -> list[str]:
    return [hit.url.removeprefix("https://d.example").partition("#")[0] for hit in page.items]


async def test_what_comes_first(look: Any) -> None:
    # a definition before a mention, an index and news
    assert paths(await look("asyncio.gather"))[0] == "/lib"
    assert paths(await look("gather"))[0] == "/lib"
    assert paths(await look("asyncio gather"))[0] == "/lib"
    # headings of one form define what their names say
    assert (await look("DocumentRoot")).items[0].heading == "DocumentRoot Directive"
    # a page before one that mentions its title
    assert paths(await look("argparse"))[0] == "/argparse"
    # any part of a word in a script without blanks
    assert paths(await look("認証")) == paths(await look("ホスト")) == ["/ja"]


SITE: dict[str, Any] = {
    "/changelog": Page([("Catalina", "Fix RemoteIpValve. Fix RemoteIpValve and hosts.")],
                       title="Server 10 (10.1.60) - Changelog"),
    "/valves": Page([("Server 10", "Components."), ("Remote IP Valve", "Replaces the address."),
                     ("Attributes", "The class is org.example.RemoteIpValve.")],
                    title="Server 10 (10.1.60) - Valves"),
    "/hosts": Page([("Server 10", "Names of hosts, and of virtual ones.")],
                   title="Server 10 (10.1.60) - Virtual Hosts"),
    "/names": Page([("Server 10", "Virtual names, virtual hosts, and hosts that are virtual.")],
                   title="Server 10 (10.1.60) - Names"),
    "/types": [("Types", 'A List<String> or Map<K, "V"> is fine; if a <b or "c, see <Leader> and'
                         ' mapleader. It is "quoted".')],
}  # fmt: skip


async def test_titles_that_begin_with_the_name_of_the_site(database: Database) -> None:
    await Corpus(database).publish("d.example", SITE)

    async def first(query: str) -> str:
        return paths(await search(database, SearchRequest(query=query)))[0]

    assert await first("virtual hosts") == "/hosts"
    # a heading in words before a mention of the name in news
    assert await first("RemoteIpValve") == "/valves"


async def test_names_with_stop_words_are_not_searched_by_their_other_words(
    database: Database,
) -> None:
    sections = {"/a": [("Objects", "Call toString on it.")], "/b": [("Strings", "A string.")]}
    await Corpus(database).publish("d.example", sections)
    assert paths(await search(database, SearchRequest(query="toString"))) == ["/a"]


@pytest.mark.parametrize("query", ["string", "List<String>", "mapleader", "quoted", "<Leader>"])
async def test_words_between_angle_brackets(database: Database, query: str) -> None:
    await Corpus(database).publish("d.example", SITE)
    found = await search(database, SearchRequest(query=query))
    assert (paths(found), found.note) == (["/types"], None)


@pytest.mark.parametrize(
    ("titles", "names"),
    [
        (["tempfile — Files", "os — System"], ["tempfile", "os"]),
        (["Vim: fold", "Vim: undo - tree", "Vim: map"], ["fold", "undo", "map"]),
        (["S 1.2 - A", "S 1.2 - B", "S 1.2 - C", "D"], ["A", "B", "C", "D"]),
        (["A - 1", "A - 2", "A - 3", "B 2 - 1", "B 2 - 2", "B 2 - 4"], [*"123124"]),
        (["a: b", "a: c", "d", "e", "f"], ["a: b", "a: c", "d", "e", "f"]),
        ([""], [""]),
    ],
)
def test_names_of_pages(titles: list[str], names: list[str]) -> None:
    assert list(page_names(titles).values()) == names


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("RemoteIpValve", "Remote Ip Valve"),
        ("XMLHttpRequest", "XML Http Request"),
        ("argparse", ""),
        ("snake_case", ""),
        ("asyncio.Queue", ""),
    ],
)
def test_parts_of_names(name: str, parts: str) -> None:
    assert parse_query(name).terms[0].parts == parts


async def test_queries_that_match_nothing_are_relaxed_and_it_is_said(look: Any) -> None:
    prefix = await look("itertools.gro")
    assert paths(prefix) == ["/lib"]
    assert "begin so" in prefix.note
    spelled = await look("argprse")
    assert paths(spelled)[0] == "/argparse"
    assert spelled.suggestion == "argparse"
    assert spelled.note == "Nothing was found for argprse. Showing results for argparse."
    partly = await look("argprse qqqqzzz")
    assert paths(partly)[0] == "/argparse"
    assert (partly.suggestion, partly.items[0].missing) == ("argparse qqqqzzz", ("qqqqzzz",))
    most = await look("what happens to my file after a power cut")
    assert paths(most)[0] == "/power"
    assert "cut" in most.items[0].missing
    assert "do not have all" in most.note
    # one identifier is written as words, and the other one nowhere
    words = await look("power_failure qqqq-zzz")
    assert paths(words)[0] == "/power"
    assert "qqqq-zzz" in words.items[0].missing
    assert (await look("xyzzy")).items == []
    assert (await look("power failure")).note is None


async def test_repeats_and_sections_of_a_page_are_grouped(look: Any) -> None:
    [hit, *rest] = (await look("generation published")).items
    assert (hit.url, hit.repeats) == ("https://d.example/publishing#part-0", 2)
    assert not rest
    page = await look("directive")
    assert (page.total, page.items[0].more_sections) == (1, 2)
    assert {section.heading for section in page.items[0].sections} < {
        "DocumentRoot Directive", "ServerName Directive", "ErrorLog Directive",
    }  # fmt: skip
    danish = await look("generation published", prefers="da")
    assert danish.items[0].url.startswith("https://d.example/da/")


async def test_filters_and_facets(look: Any) -> None:
    assert paths(await look("generation", language="da-DK")) == ["/da/publishing"]
    assert paths(await look("gather", kind=SectionKind.LISTING)) == ["/index"]
    found = await look("server", kind=SectionKind.DEFINITION)
    assert paths(found) == ["/mod/core"]
    assert (await look("gather")).facets["source"] == {"d.example": 4}


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [
        ("", "", 0),
        ("argprse", "argparse", 1),
        ("vaccum", "vacuum", 1),
        ("reed", "board", 4),
        ("bisect", "bisetc", 1),
    ],
)
def test_distance_between_words(one: str, other: str, edits: int) -> None:
    assert distance(one, other) == distance(other, one) == edits


def test_the_closest_word_is_near_and_common() -> None:
    assert closest("reed", {"read": 3, "rest": 90, "need": 5}) == "need"
    assert closest("bord", {"board": 1, "word": 9}) == "word"
    assert closest("abcd", {"wxyz": 100}) is None


def test_the_language_of_a_reader() -> None:
    assert preferred_language("de-AT,de;q=0.9,en;q=0.8") == "de"
    assert preferred_language("fr_FR.UTF-8") == "fr"
    assert [preferred_language(text) for text in (None, "", "C.UTF-8", "*", "C")] == [None] * 5
