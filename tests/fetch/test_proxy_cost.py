"""What proxies cost: prices as people write them, and shares that add up to the whole."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.errors import InvalidInput
from forager.fetch.proxies.cost import (
    CENT_OF_A_CENT,
    CostUnit,
    ProxyCost,
    Share,
    Traffic,
    months,
    parse_cost,
    rounded_together,
    shares,
)

DAY = date(2026, 2, 1)
LAST = date(2026, 2, 28)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.002/request", "0.002 USD/request"),
        (" 3.50 / gb ", "3.5 USD/GB"),
        ("50/month", "50 USD/month"),
        ("0/month", "0 USD/month"),
        ("100.00/Month", "100 USD/month"),
    ],
)
def test_a_price_is_read_and_shown(text: str, shown: str) -> None:
    assert str(parse_cost(text)) == shown


@pytest.mark.parametrize(
    "text",
    ["", "3", "/GB", "3/day", "-1/GB", "1e9/GB", "nan/GB", "3,50/GB", "1/2/GB", "9999999/month"],
)
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_cost(text)


def test_a_currency_has_three_letters() -> None:
    assert parse_cost("1/GB", "eur").currency == "EUR"
    with pytest.raises(InvalidInput, match="not a currency"):
        parse_cost("1/GB", "euro")


def test_requests_and_bytes_are_multiplied() -> None:
    traffic = [Traffic("a.example", 1500, 0), Traffic("b.example", 1, 2_500_000_000)]
    by_request = shares(ProxyCost(Decimal("0.002"), CostUnit.REQUEST), traffic, DAY, LAST)
    assert [share.cost for share in by_request] == [Decimal("3.0000"), Decimal("0.0020")]
    by_bytes = shares(ProxyCost(Decimal("3.50"), CostUnit.GB), traffic, DAY, LAST)
    assert [share.cost for share in by_bytes] == [Decimal("0.0000"), Decimal("8.7500")]


def test_a_month_is_shared_by_bytes_and_without_bytes_by_requests() -> None:
    price = ProxyCost(Decimal(60), CostUnit.MONTH)
    by_bytes = shares(price, [Traffic("a", 1, 300), Traffic("b", 999, 100)], DAY, LAST)
    assert [share.cost for share in by_bytes] == [Decimal("45.0000"), Decimal("15.0000")]
    by_requests = shares(price, [Traffic("a", 1, 0), Traffic("b", 2, 0)], DAY, LAST)
    assert [share.cost for share in by_requests] == [Decimal("20.0000"), Decimal("40.0000")]
    # it has to be paid all the same
    assert shares(price, [], DAY, LAST) == [Share(None, 0, 0, Decimal("60.0000"))]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (DAY, LAST, Fraction(1)),
        (date(2026, 1, 31), date(2026, 2, 1), Fraction(1, 31) + Fraction(1, 28)),
        (date(2025, 1, 1), date(2026, 12, 31), Fraction(24)),
        (date(2026, 2, 14), date(2026, 2, 14), Fraction(1, 28)),
        (date(2026, 2, 2), date(2026, 2, 1), Fraction(0)),
    ],
)
def test_days_are_parts_of_their_months(first: date, last: date, expected: Fraction) -> None:
    assert months(first, last) == expected


COUNTS = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**15)), max_size=30)
AMOUNTS = st.decimals(0, 10**6, places=8, allow_nan=False)


@given(amount=AMOUNTS, counts=COUNTS, start=st.dates(date(2020, 1, 1)), days=st.integers(1, 800))
def test_the_shares_of_a_month_are_the_whole_of_it(
    amount: Decimal, counts: list[tuple[int, int]], start: date, days: int
) -> None:
    start = min(start, date(9990, 1, 1))
    last = start + timedelta(days=days - 1)
    traffic = [Traffic(f"{n}.example", *each) for n, each in enumerate(counts)]
    found = shares(ProxyCost(amount, CostUnit.MONTH), traffic, start, last)
    total = sum((share.cost for share in found), Decimal(0))
    whole = Fraction(amount) * months(start, last)
    assert abs(Fraction(total) - whole) <= Fraction(CENT_OF_A_CENT) / 2
    assert all(share.cost >= 0 for share in found)


@given(amount=AMOUNTS, counts=COUNTS, unit=st.sampled_from([CostUnit.REQUEST, CostUnit.GB]))
def test_shares_by_use_are_what_the_sum_of_all_use_costs(
    amount: Decimal, counts: list[tuple[int, int]], unit: CostUnit
) -> None:
    cost = ProxyCost(amount, unit)
    traffic = [Traffic(f"{n}.example", *each) for n, each in enumerate(counts)]
    together = Traffic("all", sum(c[0] for c in counts), sum(c[1] for c in counts))
    [whole] = shares(cost, [together], DAY, LAST)
    assert sum((s.cost for s in shares(cost, traffic, DAY, LAST)), Decimal(0)) == whole.cost


@given(st.lists(st.fractions(0, 10**9), max_size=50))
def test_nothing_is_lost_or_made_by_rounding(amounts: list[Fraction]) -> None:
    rounded = rounded_together(amounts)
    [whole] = rounded_together([sum(amounts, Fraction(0))])
    assert sum(rounded, Decimal(0)) == whole
    for exact, given_ in zip(amounts, rounded, strict=True):
        assert abs(Fraction(given_) - exact) <= Fraction(CENT_OF_A_CENT)
