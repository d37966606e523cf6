"""Hostile and odd queries and texts."""

from __future__ import annotations

import pytest

from documents.searching import Look, marked, numbered
from search_corpus import Corpus, Page

NOTHING_TO_LOOK_FOR = {
    "": "No searchable words",
    "   ": "No searchable words",
    '""': "No searchable words",
    "or OR or": "No searchable words",
    "the of and": "too common",
    "& | ! ( ) : *": "too common",
    '-"needle"': "only words to exclude",
    '-"needle" or -"other"': "only words to exclude",
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


async def test_a_query_cannot_reach_another_source_by_its_lexeme(
    corpus: Corpus, look: Look
) -> None:
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
