"""Vectors and queries of the real PostgreSQL, as the search engine gets them."""

from __future__ import annotations

from typing import Any

import pytest

from forager.db.database import Database
from forager.index.tsquery import (
    EVERYTHING,
    LONGEST,
    All,
    Either,
    Not,
    Row,
    Word,
    engine_query,
    parse,
    words_of,
)


async def evaluate(database: Database, expression: Any, *values: object) -> str:
    async with database.connection() as connection:
        cursor = await connection.execute(f"SELECT ({expression})::text", values)
        row = await cursor.fetchone()
    assert row is not None
    return str(row[0])


# --- vectors -----------------------------------------------------------------------------------


async def test_words_are_told_in_their_order_without_common_ones(database: Database) -> None:
    vector = await evaluate(
        database, "to_tsvector('english', %s)", "the write ahead log is written first, the log"
    )
    words = ["write", "ahead", "log", "written", "first", "log"]
    assert words_of(vector).split("\n") == words


async def test_words_without_a_place_stand_at_the_end(database: Database) -> None:
    vector = await evaluate(
        database,
        "setweight(to_tsvector('simple', 'a b'), 'A') || array_to_tsvector(%s)",
        ["pg_stat.query", "--no-verify", "§7"],
    )
    words = words_of(vector).split("\n")
    assert words[:2] == ["a", "b"]
    assert set(words[2:]) == {"pg_stat.query", "--no-verify", "§7"}


async def test_quotes_and_backslashes_come_back_as_they_were(database: Database) -> None:
    odd = ["it's", "a\\b", "''", "\\'", "end\\"]
    vector = await evaluate(database, "array_to_tsvector(%s)", odd)
    assert set(words_of(vector).split("\n")) == set(odd)


async def test_long_words_are_cut_for_both_sides(database: Database) -> None:
    vector = await evaluate(database, "to_tsvector('simple', %s)", "x" * 1500)
    assert words_of(vector) == "x" * LONGEST
    assert engine_query(f"'{'x' * 1500}'", "words") == {"term": {"words": "x" * LONGEST}}
    assert engine_query("'pg_st':*", "words") == {"prefix": {"words": "pg_st"}}


async def test_a_text_of_many_words_is_told_without_end_of_places(database: Database) -> None:
    text = " ".join(f"w{number}" for number in range(20_000))
    words = words_of(await evaluate(database, "to_tsvector('simple', %s)", text)).split("\n")
    assert set(words) == set(text.split())
    assert len(words) == 20_000  # all beyond a number have the same place
    assert words[:3] == ["w0", "w1", "w2"]
    assert words_of("") == ""


# --- queries -----------------------------------------------------------------------------------

TYPED = [
    ("simple", "cat", Word("cat")),
    ("simple", "cat dog", All((Word("cat"), Word("dog")))),
    ("simple", "cat or dog", Either((Word("cat"), Word("dog")))),
    ("simple", "cat -dog", All((Word("cat"), Not(Word("dog"))))),
    ("english", '"end of line"', Row(((1, Word("end")), (2, Word("line"))))),
    ("simple", '"it\'s a"', Row(((1, Word("it")), (1, Word("s")), (1, Word("a"))))),
    (
        "simple",
        '-"a b" c or d',
        Either((All((Not(Row(((1, Word("a")), (1, Word("b"))))), Word("c"))), Word("d"))),
    ),
]


@pytest.mark.parametrize(("config", "typed", "read"), TYPED)
async def test_queries_are_read_as_postgresql_writes_them(
    database: Database, config: str, typed: str, read: object
) -> None:
    query = await evaluate(database, "websearch_to_tsquery(%s::regconfig, %s)", config, typed)
    assert parse(query) == read


async def test_what_is_written_by_hand_is_read_as_postgresql_reads_it(database: Database) -> None:
    """Brackets that are not needed, and operators without them."""
    for query in (
        "('a' & ('b')) | !('c' | 'd')",
        "'a' | 'b' & 'c' <-> 'd' & !'e'",
        "(('§1' | '§2')) & ('x' <2> 'y')",
        "'it''s' & 'a\\\\b'",
    ):
        written = await evaluate(database, "%s::tsquery", query)
        assert _bare(parse(query)) == _bare(parse(written))


def _bare(node: object) -> object:
    """A node without brackets: PostgreSQL writes `a & b & c` for any nesting."""
    match node:
        case All(operands) | Either(operands):
            flat: list[object] = []
            for operand in operands:
                one = _bare(operand)
                same = isinstance(one, tuple) and one[0] is type(node)
                flat += one[1] if same else [one]  # type: ignore[index]
            return (type(node), flat)
        case _:
            return node


def test_only_what_is_exact_excludes() -> None:
    query = engine_query("'a' & !'b' & !('c' <-> 'd')", "words")
    assert query == {
        "bool": {
            "must": [{"term": {"words": "a"}}],
            "must_not": [{"term": {"words": "b"}}],
        }
    }
    # what shares the beginning of a long word may be another
    long = engine_query(f"'a' & !'{'x' * (LONGEST + 1)}' & !'{'y' * LONGEST}'", "words")
    assert long["bool"]["must_not"] == [{"term": {"words": "y" * LONGEST}}]
    assert engine_query("!('a' | 'b')", "words") == {"bool": {"must": [EVERYTHING], "must_not": []}}


def test_a_row_of_words_is_a_phrase_and_a_row_of_others_is_all_of_them() -> None:
    assert engine_query("'a' <-> 'b' <3> 'c'", "words") == {
        "match_phrase": {"words": {"query": "a\nb\nc", "slop": 2}}
    }
    query = engine_query("'a' <-> ('b' | 'c')", "words")
    assert [*query["bool"]["must"][1]["bool"]] == ["should", "minimum_should_match"]


@pytest.mark.parametrize("text", ["", "'a' &", "('a'", "'a')", "& 'a'", "'a' 'b'"])
def test_what_is_no_query_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)
