"""Withheld prices are visible as what they were, and wrong ones leave the history."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forager.errors import InvalidInput, NotFound
from forager.products.price_history import price_history
from forager.products.service import show_product
from forager.products.validation.withheld import allow_price, reject_price
from products.product_shop import HISTORY, Shop, lamp

WRONG = Decimal("8824.46")


async def entries(shop: Shop) -> list[tuple[str, str, int | None]]:
    """Price, standing and visits, oldest first, read in pages of one."""
    found, cursor = [], None
    while True:
        page = await price_history(
            shop.database, shop.url("lamp"), withheld=True, cursor=cursor, limit=1
        )
        found += [(f"{e.price:.2f}", e.standing, e.visits) for e in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found[::-1]


async def test_a_price_that_was_seen_once_is_in_the_history_as_not_confirmed(shop: Shop) -> None:
    await shop.visit("lamp", lamp("50"))
    assert (await shop.visit("lamp", lamp(str(WRONG)))).is_doubted
    assert await entries(shop) == [("50.00", "recorded", None), ("8824.46", "open", 1)]
    # another doubt right after one: the page is not visited early again and again
    assert not (await shop.visit("lamp", lamp("900"))).is_doubted
    await shop.visit("lamp", lamp("51"))
    assert await entries(shop) == [
        ("50.00", "recorded", None), ("8824.46", "not_confirmed", 1),
        ("900.00", "not_confirmed", 1), ("51.00", "recorded", None),
    ]  # fmt: skip
    # the history without them is that of the shop
    plain = await price_history(shop.database, shop.url("lamp"))
    assert [e.price for e in plain.items] == [51, 50]


async def test_a_confirmed_price_shows_when_it_was_first_seen(shop: Shop) -> None:
    await shop.visit("lamp", lamp("50"))
    for _ in range(3):
        await shop.visit("lamp", lamp("900"))
    assert await entries(shop) == [
        ("50.00", "recorded", None), ("900.00", "confirmed", 2), ("900.00", "recorded", None),
    ]  # fmt: skip


async def test_reading_the_same_page_again_adds_no_withheld_price(shop: Shop) -> None:
    await shop.visit("lamp", lamp("50"))
    page = await shop.page("lamp", lamp("900"))
    for _ in range(3):
        await shop.write(page)
    assert await entries(shop) == [("50.00", "recorded", None), ("900.00", "open", 1)]


async def test_a_price_that_a_user_marks_as_wrong_leaves_the_history(shop: Shop) -> None:
    for price in ("50", "60", "50", "70", "60"):
        await shop.visit("lamp", lamp(price))
    assert await reject_price(shop.database, shop.url("lamp"), Decimal(60)) == 2
    assert [row[0] for row in await shop.rows(HISTORY)] == [50, 70]
    details = await show_product(shop.database, shop.url("lamp"))
    assert (details.product.price, details.history.lowest) == (Decimal(70), Decimal(50))
    # it is refused however often it is seen, and does not hide what comes later
    for _ in range(3):
        [problem] = (await shop.visit("lamp", lamp("60"))).problems
        assert problem.rule == "rejected"
    await shop.visit("lamp", lamp("65"))
    assert [row[0] for row in await shop.rows(HISTORY)] == [50, 70, 65]
    with pytest.raises(NotFound):
        await reject_price(shop.database, shop.url("lamp"), Decimal(61))
    with pytest.raises(InvalidInput):
        await reject_price(shop.database, shop.url("lamp"), Decimal("NaN"))
    await allow_price(shop.database, shop.url("lamp"), Decimal(60))
    assert (await shop.visit("lamp", lamp("60"))).price_changed
    with pytest.raises(NotFound):
        await allow_price(shop.database, shop.url("lamp"), Decimal(60))


async def test_the_only_price_may_be_wrong(shop: Shop) -> None:
    await shop.visit("lamp", lamp("60"))
    assert await reject_price(shop.database, shop.url("lamp"), Decimal(60)) == 1
    assert (await show_product(shop.database, shop.url("lamp"))).product.price is None
    await shop.visit("lamp", lamp("65"))
    assert [row[0] for row in await shop.rows(HISTORY)] == [None, 65]
