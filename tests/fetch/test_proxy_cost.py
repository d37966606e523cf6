"""Prices of proxies, as people write them."""

from __future__ import annotations

import pytest

from forager.errors import InvalidInput
from forager.fetch.proxies.proxy import parse_cost


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.002/request", "0.002 USD/request"),
        (" 3.50 / gb ", "3.5 USD/GB"),
        ("0/request", "0 USD/request"),
        ("100.00/GB", "100 USD/GB"),
    ],
)
def test_a_price_is_parsed_and_shown(text: str, shown: str) -> None:
    assert str(parse_cost(text)) == shown


@pytest.mark.parametrize(
    "text",
    ["", "3", "/GB", "3/day", "-1/GB", "1e9/GB", "nan/GB", "3,50/GB", "1/2/GB", "9999999/GB"],
)
def test_an_invalid_price_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_cost(text)


def test_a_currency_has_three_letters() -> None:
    assert parse_cost("1/GB", "eur").currency == "EUR"
    with pytest.raises(InvalidInput, match="not a currency"):
        parse_cost("1/GB", "euro")
