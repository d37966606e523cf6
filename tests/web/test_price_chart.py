"""The drawing of a price: its steps, its gaps, and what it says in words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from forager.operations.models import interval_text as interval
from forager.products.price_history import PriceEntry
from forager.web.formats import money
from forager.web.price_chart import price_chart
from forager.web.routes.products import _drawn, _ranges

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def entry(
    days: float, price: str | None, availability: str | None = "in_stock", currency: str = "EUR"
) -> PriceEntry:
    amount = None if price is None else Decimal(price)
    at = NOW - timedelta(days=days)
    return PriceEntry(1, 1, amount, None, currency, availability, at, None)


def lines(drawn: str) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (point.split(",") for point in points.split())]
        for points in re.findall('<polyline class="line-a" points="([^"]+)"', drawn)
    ]


def test_each_price_is_a_step_from_its_moment_to_the_next() -> None:
    drawn = str(price_chart([entry(1, "8"), entry(4, "10")], NOW))
    [[first, left, down, last]] = lines(drawn)
    assert (first[0], left[0], down[0], last[0]) == (0, 450, 450, 600)
    assert first[1] == left[1] < down[1] == last[1]


def test_where_no_price_or_another_currency_was_the_line_is_broken() -> None:
    entries = [entry(1, "8"), entry(2, None), entry(3, "9"), entry(4, "9", currency="USD")]
    assert [len(line) for line in lines(str(price_chart(entries, NOW)))] == [2, 2]


def test_one_price_is_a_level_line_and_none_is_nothing() -> None:
    [[(start, level), (end, same)]] = lines(str(price_chart([entry(0, "8")], NOW)))
    assert (start, end, level) == (0, 600, same)
    assert str(price_chart([], NOW)) == ""
    assert lines(str(price_chart([entry(1, None)], NOW))) == []


@pytest.mark.parametrize(
    ("prices", "labels"),
    [
        (["42.42", "52.40"], ["60.00", "50.00", "40.00"]),
        (["8"], ["9.00", "8.00", "7.00"]),
        (["0"], ["1.00", "0.50", "0.00"]),
        (["1299", "1301.5"], ["1,302.00", "1,300.00", "1,298.00"]),
    ],
)
def test_the_axis_has_round_prices(prices: list[str], labels: list[str]) -> None:
    drawn = str(price_chart([entry(days, price) for days, price in enumerate(prices)], NOW))
    assert re.findall("<span>EUR\N{NO-BREAK SPACE}([^<]+)</span>", drawn) == labels


def test_the_description_of_a_chart_is_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    drawn = str(price_chart([entry(1, "8", hostile, hostile), entry(2, "9", None)], NOW))
    assert "<script" not in drawn
    assert "availability unknown" in drawn
    sold_out = str(price_chart([entry(1, "8", "out_of_stock"), entry(4, "10")], NOW))
    assert "now EUR\N{NO-BREAK SPACE}8.00" in sold_out
    assert 'class="fill-d"' in sold_out


@pytest.mark.parametrize(
    ("amount", "shown"),
    [("1299.5", "1,299.50"), ("0.125", "0.125"), ("3", "3.00"), ("9999999999.9999", None)],
)
def test_money_has_two_digits_unless_more_say_something(amount: str, shown: str | None) -> None:
    assert money(Decimal(amount), None) == (shown or "9,999,999,999.9999")
    assert money(None, "EUR") == "\N{EN DASH}"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, ""), (21600, "6h"), (604800, "1w"), (90, "90s"), (1.5, "1.5s")]
)
def test_an_interval_is_as_forms_take_it(seconds: float | None, shown: str) -> None:
    assert interval(seconds) == shown


def test_a_time_range_begins_with_the_price_that_was_valid_then() -> None:
    drawn = _drawn([entry(5, "8"), entry(40, "10"), entry(90, "12")], NOW, 30)
    assert [each.price for each in drawn] == [Decimal("8"), Decimal("10")]
    assert drawn[-1].recorded_at == NOW - timedelta(days=30)
    assert len(_drawn([entry(5, "8"), entry(40, "10")], NOW, None)) == 2
    tabs = _ranges(7, [entry(5, "8"), entry(100, "10")], NOW, 30)
    assert [(url, shown) for url, _, shown, _ in tabs] == [
        ("/products/7?days=30", True),
        ("/products/7?days=90", False),
        ("/products/7", False),
    ]
    assert _ranges(7, [entry(5, "8")], NOW, None) == []
