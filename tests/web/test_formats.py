"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from forager.errors import InvalidInput
from forager.web.formats import (
    MISSING,
    change,
    counted,
    cron_text,
    duration,
    highlighted,
    humanize_causes,
    number,
    percent,
    size,
    when,
)
from forager.web.forms import parse_form


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, MISSING),
        (0, "0"),
        (1234567, "1,234,567"),
        (2.5, "2.5"),
        (0.333, "0.33"),
        (1234.5, "1,234"),
    ],
)
def test_numbers(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_causes_in_a_text_are_words() -> None:
    assert humanize_causes("failed (http_404).") == "failed (404 Not Found)."
    note = "too many URLs failed (370 × http_404, 2 × timeout) of 400 (at_most five)"
    assert humanize_causes(note) == note.replace("http_404", "404 Not Found")


def test_a_cron_expression_is_words() -> None:
    assert cron_text("30 4 * * 1-5") == "at 04:30 on Monday through Friday"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, MISSING),
        (0, "0 s"),
        (0.2, "200 ms"),
        (0.0001, "1 ms"),
        (0.9996, "1 s"),
        (-0.3, "0 s"),
        (1.5, "1.5 s"),
        (9.98, "10 s"),
        (59, "59 s"),
        (3600, "1 h"),
        (4020, "1 h 7 min"),
        (86400 + 60, "1 d"),
    ],
)
def test_durations_have_two_units_that_say_something(value: float | None, shown: str) -> None:
    assert duration(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2e15, "2.0 PB")]
)
def test_sizes(value: float, shown: str) -> None:
    assert size(value) == shown


def test_shares_and_counts() -> None:
    assert [percent(0.005), percent(0.5), percent(None)] == ["0.5 %", "50 %", MISSING]
    assert [counted(1, "page"), counted(1200, "page")] == ["1 page", "1,200 pages"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-4.81, "-4.8 %"),
        (10, "+10 %"),
        (0.04, "+0.04 %"),
        (Decimal("-0.04"), "-0.04 %"),
        (0.001, "0 %"),
        (1000.0, "+1,000 %"),
    ],
)
def test_changes_have_a_sign(value: float | Decimal, shown: str) -> None:
    assert change(value) == shown


def test_a_time_is_exact_in_attributes_and_tooltips() -> None:
    shown = when(datetime(2026, 3, 1, 12, 5, 7, tzinfo=UTC))
    assert 'datetime="2026-03-01T12:05:07+00:00"' in shown
    assert 'title="2026-03-01 12:05:07 UTC"' in shown


def test_what_is_highlighted_is_still_only_text() -> None:
    text = "<b>one</b> & two"
    assert highlighted(text, ((3, 6),)) == "&lt;b&gt;<mark>one</mark>&lt;/b&gt; &amp; two"
    assert highlighted("<i>", ()) == "&lt;i&gt;"


def test_forms_take_numbers_and_refuse_what_is_none() -> None:
    form = parse_form(
        b"pages=12&delay=0.5&empty=&odd=1e3&huge=99999999999999999999999&lines=a%0D%0A%0Ab"
    )
    assert form.number("pages") == 12
    assert form.number("empty") is None
    assert form.number("missing") is None
    assert form.amount("delay") == 0.5
    assert form.lines("lines") == ["a", "b"]
    for name in ("odd", "huge", "lines"):
        with pytest.raises(InvalidInput):
            form.number(name)
    with pytest.raises(InvalidInput):
        form.amount("lines")


def test_forms_are_limited() -> None:
    with pytest.raises(InvalidInput, match="fields"):
        parse_form(b"a&" * 5000)
    with pytest.raises(InvalidInput, match="large"):
        parse_form(b"a=" + b"x" * 2_000_000)
    assert parse_form(b"a=\x00%00b%ff").text("a") == "b\N{REPLACEMENT CHARACTER}"
