"""Causes: every kind has a type, and equal causes have equal keys."""

from __future__ import annotations

import pytest

from forager.errors import ErrorKind, GiveUp, Retry, SlowDown
from forager.failures.cause import ERROR_TYPES, cause_of, message_key


def test_every_kind_has_a_type() -> None:
    assert set(ERROR_TYPES) == set(ErrorKind)


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("the server answered 404 Not Found", "the server answered 404 Not Found"),
        ("no connection within 10 s", "no connection within <n> s"),
        ("https://shop.example/p/1?x=2 redirects in a loop", "<url> redirects in a loop"),
        ("no connection to 10.0.0.7:8080", "no connection to <address>"),
        ("no connection to [fe80::1]", "no connection to <address>"),
        ("request 0190f3a2-7c1e-7000-8000-1234567890ab was lost", "request <id> was lost"),
        ("took 1,234.5 s of 20", "took <n> s of <n>"),
    ],
)
def test_the_key_of_a_cause_names_the_error_and_not_the_url(message: str, key: str) -> None:
    assert message_key(message) == key


def test_what_to_do_follows_from_the_class() -> None:
    assert cause_of(GiveUp("no", kind=ErrorKind.TLS)).permanent
    assert not cause_of(Retry("later", kind=ErrorKind.NETWORK)).permanent
    assert cause_of(SlowDown("slowly", retry_after=7.0)).retry_after == 7.0


def test_internal_errors_are_stored_with_their_traceback() -> None:
    try:
        raise KeyError("lone \ud800 and \0")
    except KeyError as error:
        cause = cause_of(error)
    assert cause.kind is ErrorKind.INTERNAL
    assert "test_internal_errors_are_stored" in (cause.stack_trace or "")
    for text in (cause.message, cause.stack_trace or ""):
        assert "\0" not in text.encode().decode()
