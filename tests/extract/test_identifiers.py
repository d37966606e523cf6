from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.identifiers import MAX_IDENTIFIERS, MAX_LENGTH, identifier_lexemes


@pytest.mark.parametrize(
    ("text", "lexemes"),
    [
        ("call `asyncio.gather(a)`.", ["asyncio.gather", "gather"]),
        ("pg_stat_activity.query", ["pg_stat_activity.query", "query"]),
        ("git commit --no-verify", ["--no-verify"]),
        ("std::vector<int>", ["std::vector", "vector"]),
        ("@app.route and @dataclass", ["@app.route", "route", "@dataclass"]),
        ("Foo::bar()", ["foo::bar", "bar"]),
        ("a snake_case, camelCase, X-Header-Name", ["snake_case", "camelcase", "x-header-name"]),
        ("obj->field $HOME print()", ["obj->field", "field", "$home", "print"]),
        (r"the \_\_init\_\_ method", ["__init__"]),
        ("e.g. plain words, i.e. none.", []),
        ("[text](https://a_b.example/c_d) https://x.y/z", []),
    ],
)
def test_identifiers_as_typed(text: str, lexemes: list[str]) -> None:
    assert identifier_lexemes(text) == lexemes


def test_a_section_has_a_bounded_number() -> None:
    text = " ".join(f"name_{number}" for number in range(5 * MAX_IDENTIFIERS))
    assert len(identifier_lexemes(text)) == MAX_IDENTIFIERS


@given(st.text(alphabet="aB1_.-:$@#<>()/ ") | st.text())
def test_any_text(text: str) -> None:
    lexemes = identifier_lexemes(text)
    assert len(lexemes) == len(set(lexemes))
    assert all(2 <= len(lexeme) <= MAX_LENGTH for lexeme in lexemes)


WORDS = ["The", "word,", "a:", "A", "snake_case", "x.yz,", "--flag", "camelCase;", "call()", "É"]


@given(
    st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from([" ", "\n", " \t ", "\u2003"])
)
def test_no_word_is_skipped_because_of_its_surroundings(words: list[str], blank: str) -> None:
    each = dict.fromkeys(lexeme for word in words for lexeme in identifier_lexemes(word))
    assert identifier_lexemes(blank.join(words)) == list(each)
