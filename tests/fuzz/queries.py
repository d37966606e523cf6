"""Searches: nothing that can be typed is an error, and no cursor is believed that is not ours."""

from __future__ import annotations

from contextlib import suppress

from forager.documents.search.hit import decode_cursor, encode_cursor
from forager.documents.search.tsquery import (
    MAX_TERMS,
    MatchMode,
    Query,
    Term,
    TermKind,
    build,
    parse_query,
)
from forager.errors import InvalidInput
from forager.extract.identifiers import identifier_lexemes
from fuzz.target import Target, assert_storable, text_of

_CURSOR = ((1, 2), 7)


def check(data: bytes) -> None:
    """What a person typed; the same text as a cursor."""
    text = text_of(data)
    query = parse_query(text)
    assert len(query.terms) <= MAX_TERMS
    for term in query.terms:
        _check_term(term)
    _check_built(query)
    with suppress(InvalidInput):
        decode_cursor(text, "question")
    assert decode_cursor(encode_cursor(_CURSOR, "question"), "question") == _CURSOR


def _check_term(term: Term) -> None:
    # a row of hyphens is a wish to stay away from nothing
    assert term.text.strip() or term.negated
    assert_storable(term.text + term.lexeme)
    assert (term.kind is TermKind.IDENTIFIER) == bool(term.lexeme)
    if term.kind is TermKind.IDENTIFIER:
        assert term.lexeme in identifier_lexemes(term.text)


def _check_built(query: Query) -> None:
    words = ["'a'" for term in query.terms for _ in term.texts]
    for reading in MatchMode:
        built = build(query, words, reading)
        assert_storable(built.match)
        wanted = [t for t in query.terms if t.kind is TermKind.IDENTIFIER and not t.negated]
        kept = built.lexemes
        assert all(term.lexeme in kept for term in wanted), "quoting must not change a lexeme"
        assert not built.positive or built.match


TARGET = Target(
    check,
    [
        b'how to "exact phrase" -without or pg_stat_activity.query --no-verify',
        b"asyncio.gather() O'Reilly\\ \xe2\x80\x9cquoted\xe2\x80\x9d GitHub -\"not this\"",
        encode_cursor(_CURSOR, "question").encode(),
    ],
    [b'"', b"-", b" or ", b"--", b"_", b"'", b"\\", b"(", b")", b"\xe2\x80\x9c", b"\xc2\xab",
     b"::", b"->", b"\0", b"\xcc\x81", b"&", b"|", b"!", b":*", b"<->"],
)  # fmt: skip
