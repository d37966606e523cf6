"""Prices and numbers as shops write them: finite, bounded, and read back the same."""

from __future__ import annotations

from decimal import Decimal

from forager.amounts import amount_text
from forager.extract.product.availability import availability_in, term_of
from forager.extract.product.currency import ISO_CODES, currency_of
from forager.extract.product.price import MAX_PRICE, amount_of, machine_amount, money_in
from forager.extract.product.wording import count_of, gtin_of, rating_of
from fuzz.target import Target, text_of


def check(data: bytes) -> None:
    """A text with amounts, and the same text where a machine should have written one."""
    text = text_of(data)
    end = 0
    for money in money_in(text, ("SEK", "EUR")):
        assert end <= money.start < money.end <= len(text), "amounts must not overlap"
        end = money.end
        _check_price(money.amount)
        assert money.currency is None or money.currency in ISO_CODES
    for currency in (None, "JPY", "KWD"):
        said = machine_amount(text, currency)
        # a machine may say what no price can be; it is still a number
        assert said is None or (said.is_finite() and 0 <= said < 10**40)
        _check_price(amount_of(text, currency))
    _check_others(text)


def _check_price(amount: Decimal | None) -> None:
    if amount is None:
        return
    assert amount.is_finite()
    assert 0 <= amount < MAX_PRICE
    # more digits than a Decimal calculates with are rounded when they are shown
    if len(amount.as_tuple().digits) <= 28:
        assert Decimal(amount_text(amount)) == amount


def _check_others(text: str) -> None:
    rating = rating_of(text, text[::-1], text[:2])
    assert rating is None or 0 <= rating <= 5
    count = count_of(text)
    assert count is None or 0 <= count < 10**9
    gtin = gtin_of(text)
    assert gtin is None or (gtin.isascii() and gtin.isdigit() and len(gtin) <= 14)
    code = currency_of(text)
    assert code is None or code in ISO_CODES
    term_of(text)
    availability_in(text)


TARGET = Target(
    check,
    [b"1.299,00 \xe2\x82\xac", b"US $1,299.99", b"12 99 kr", b"Rs. 1,23,456.50", b"5.000 JPY",
     b"1e3", b"CHF 1'299.-", b"4.5 / 5 (1,234)", b"4006381333931",
     b"\xd9\xa1\xd9\xa2\xd9\xa3 \xd8\xb1.\xd8\xb3", b"0.001 BTC"],
    [b"\xe2\x82\xac", b"\xc2\xa3", b"$", b"EUR", b"kr", b",", b".", b"'", b"\xc2\xa0",
     b"\xe2\x80\xaf", b"000", b"\xd9\xa1", b"\xc2\xb2", b"\xe0\xa5\xa7", b"-", b"%", b"e9", b"X"],
)  # fmt: skip
