from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.documents.search.snippets import LENGTH, make_snippet, plain_text, text_to_mark
from forager.documents.search.tsquery import MAX_TERMS, TermKind, parse_query


def read(text: str) -> list[list[str]]:
    """Alternatives as texts: "phrases" in quotes, <identifiers> in brackets, - for without."""
    marks = {TermKind.WORDS: "{}", TermKind.PHRASE: '"{}"', TermKind.IDENTIFIER: "<{}>"}
    return [
        ["-" * term.negated + marks[term.kind].format(term.text) for term in alternative]
        for alternative in parse_query(text).alternatives
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("row locks", [["row", "locks"]]),
        ('a "b c" -d', [["a", '"b c"', "-d"]]),
        ('-"b c"', [['-"b c"']]),
        ("a b OR c OR d", [["a", "b"], ["c"], ["d"]]),
        ("a or b OR c", [["a"], ["b"], ["c"]]),
        ("insert or update a row", [["insert", "update", "a", "row"]]),
        ("or a or", [["a"]]),
        ('"never ends', [['"never ends"']]),
        ('one"two three"', [["one", "two", "three"]]),
        ("asyncio.gather() now", [["<asyncio.gather>", "now"]]),
        ("--no-verify", [["<--no-verify>"]]),
        ('"-Wall"', [["<-Wall>"]]),
        # a query begins with options; after a word, a dash excludes
        ("-Wall", [["<-Wall>"]]),
        ("-Wall -Werror", [["<-Wall>", "<-Werror>"]]),
        ("--gc:orc", [["gc:orc"]]),
        ("gcc -Wall", [["gcc", "-Wall"]]),
        ("rows -pg_stat_activity", [["rows", "-<pg_stat_activity>"]]),
        ("a=pg_stat", [["a=pg_stat"]]),
        ("-", [["-"]]),
        ("", []),
    ],
)
def test_how_a_query_is_read(text: str, expected: list[list[str]]) -> None:
    assert read(text) == expected


@given(st.text(max_size=300))
def test_anything_can_be_typed(text: str) -> None:
    query = parse_query(text)
    assert len(query.terms) <= MAX_TERMS
    assert all(term.text and "\0" not in term.text for term in query.terms)
    "".join(term.text for term in query.terms).encode()


WORDS = st.sampled_from(
    ["needle", "hay", "<b>", "stack.", "[a](b)", "**x**", "`c`", "\n", "|", "é"]
)


@given(st.lists(WORDS, max_size=400), st.integers(0, 400))
def test_snippets_are_short_and_their_ranges_fit(words: list[str], place: int) -> None:
    text = text_to_mark(" ".join([*words[:place], "needle", *words[place:]]), ["needle"])
    snippet, highlights = make_snippet(text.replace("needle", "\x03needle\x04"), [])
    assert len(snippet) <= LENGTH + 4
    assert highlights
    assert {snippet[a:b] for a, b in highlights} == {"needle"}
    assert not any(ord(char) < 32 for char in snippet)


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("**LABEL *'label'*** Sets", "LABEL 'label' Sets"),
        ("***both*** and *one **two** three*", "both and one two three"),
        ("> ### Caution\n>\n> If you modify files\n> - x", "Caution If you modify files x"),
        ("Low Level API **[26.3.4. Callbacks](https://d.example/lo", "Low Level API"),
        ("`f(**options)` is 2 * 3 * 4 #1 >= 0", "f(**options) is 2 * 3 * 4 #1 >= 0"),
    ],
)
def test_snippets_are_plain_text(markdown: str, text: str) -> None:
    assert plain_text(markdown) == text


def test_a_snippet_has_no_half_links() -> None:
    links = " ".join(f"**[Item {n}](https://d.example/{'long' * 20}/{n})**" for n in range(200))
    snippet, _ = make_snippet(text_to_mark(links, ["item 100"]), ["Item 100"])
    assert "Item 100" in snippet
    assert not set("*[](") & set(snippet)


def test_the_snippet_is_where_most_of_the_query_is() -> None:
    marked = "\x03one\x04 " + "x " * 500 + "\x03one\x04 and \x03two\x04 " + "y " * 500
    snippet, _ = make_snippet(marked, [])
    assert "one and two" in snippet
    assert snippet.startswith("… ")
    assert snippet.endswith(" …")
