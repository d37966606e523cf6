"""Queries as the engine gets them."""

from __future__ import annotations

from typing import Any

import pytest

from forager.index.query import words_query


def asked(typed: str) -> dict[str, Any]:
    query: dict[str, Any] = words_query(typed, ("a", "b^2"))["simple_query_string"]
    assert query["fields"] == ["a", "b^2"]
    return query


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("brass lamp", "(brass lamp)"),
        ('"brass lamp" -copper', '("brass lamp" -copper)'),
        ("brass or copper", "(brass) | (copper)"),
        ("insert or update a row", "(insert or update a row)"),
        ("a OR b c", "(a) | (b c)"),
        ("--no-verify", '("--no-verify")'),
        ("f(x) | y", "(f x    y)"),
        ("or", ""),
        ("", ""),
    ],
)
def test_signs(typed: str, text: str) -> None:
    assert asked(typed)["query"].split() == text.split()


def test_most_words_of_a_long_query_are_enough() -> None:
    assert asked("one two three four")["minimum_should_match"] == "3<75%"
    assert asked("one -two")["default_operator"] == "and"
    assert "minimum_should_match" not in asked('"one two" three')
