"""Learned places: pages whose data states a price teach where the others show theirs."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forager.clock import local_time
from forager.db.database import Database
from forager.extract.product.extract import extract_product
from forager.extract.product.page import open_page
from forager.extract.product.places import NOTHING_LEARNED, LearnedPlace
from forager.extract.product.product import Product
from forager.products.store.templates import PriceTemplate, ShownPrice
from forager.products.validation.learned_places import LOOK_AGAIN, LearnedPlaces, decide_template
from forager.settings import Settings
from products.product_shop import Shop

DATA = """<script type="application/ld+json">{{"@type": "Product", "name": "Lamp {0}",
"offers": {{"price": "{1}", "priceCurrency": "EUR"}}}}</script>"""
# what is called a price is that of a bundle; the price has a name that says nothing
BODY = """<h1>Lamp {0}</h1><span class="price">€ 200.00</span>
<div class="offer-box"><b class="x-val">€ {1}</b></div><p>Warranty € 9.00</p>"""
PATH = "b.x-val"


def read(number: int, place: LearnedPlace, *, data: str | None = None, shown: str = "") -> Product:
    price = f"{number + 20}.50"
    html = (DATA.format(number, data) if data else "") + BODY.format(number, shown or price)
    page = open_page(html.encode(), f"https://shop.example/lamp-{number}", "text/html")
    return extract_product(page, place=place)


def test_a_page_with_data_is_searched_for_the_element_that_shows_its_price() -> None:
    evidence = read(1, LearnedPlace(search=True), data="21.50").evidence["price"]
    assert (evidence.place, evidence.origin) == (PATH, "json-ld:Product.offers")
    assert read(1, NOTHING_LEARNED, data="21.50").evidence["price"].place is None
    assert read(1, LearnedPlace(PATH), data="30.00").evidence["price"].place == ""


def test_a_learned_path_gives_the_price_of_a_page_without_data() -> None:
    assert read(2, NOTHING_LEARNED).price != Decimal("22.50")
    product = read(2, LearnedPlace(PATH))
    assert (product.price, product.currency) == (Decimal("22.50"), "EUR")
    assert product.evidence["price"].origin == f"learned:{PATH}"


def test_stated_prices_stand_and_empty_places_say_nothing() -> None:
    assert read(3, LearnedPlace(PATH), data="30.00").price == Decimal("30.00")
    without = read(3, NOTHING_LEARNED)
    assert read(3, LearnedPlace("b.other")).price == without.price
    two = read(3, LearnedPlace(PATH), shown="5.00 or € 6.00")
    assert not two.evidence["price"].origin.startswith("learned:")


def test_a_path_that_also_leads_to_other_products_gives_no_price() -> None:
    html = "<h1>Lamp</h1>" + "".join(f'<b class="x-val">€ {n}.00</b>' for n in (98, 99))
    page = open_page(html.encode(), "https://shop.example/lamp", "text/html")
    price = extract_product(page, place=LearnedPlace(PATH)).evidence.get("price")
    assert price is None or not price.origin.startswith("learned:")


def test_where_nothing_can_be_bought_the_learned_path_is_not_used() -> None:
    html = '<h1>Lamp</h1><p class="stock">Out of stock</p><a><b class="x-val">€ 99.00</b></a>'
    page = open_page(html.encode(), "https://shop.example/lamp", "text/html")
    assert extract_product(page, place=LearnedPlace(PATH)) == extract_product(page)


def test_elements_without_a_plain_name_have_no_path() -> None:
    html = DATA.format(1, "21.50") + '<h1>Lamp</h1><g:price class="price">€ 21.50</g:price>'
    page = open_page(html.encode(), "https://shop.example/lamp", "text/html")
    product = extract_product(page, place=LearnedPlace(search=True))
    assert (product.price, product.evidence["price"].place) == (Decimal("21.50"), "")


@pytest.mark.parametrize(
    ("places", "path"),
    [
        ("aaa", "a"),
        ("aa", None),
        ("aaab", "a"),
        ("aaabb", None),
        # the shop moved its price
        ("----aaaaaaaa", None),
    ],
)
def test_pages_vote_for_a_path(places: str, path: str | None) -> None:
    shown = [ShownPrice(str(n), "" if p == "-" else p) for n, p in enumerate(places)]
    template = decide_template(shown)
    assert template == (None if path is None else PriceTemplate(path))


def test_one_price_could_stand_anywhere() -> None:
    assert decide_template([ShownPrice("5", "a")] * 10) is None


async def test_a_domain_learns_from_its_visits_and_forgets_what_stops_agreeing(
    database: Database, settings: Settings
) -> None:
    shop = await Shop(database, settings).open()
    for number in range(4):
        place = await LearnedPlaces(database).place_in(shop.domain_id)
        assert place == (LearnedPlace(search=True) if number < 3 else LearnedPlace(PATH))
        await shop.visit(f"{number}", read(number, place, data=f"{number + 20}.50"))
    for number in range(4, 6):
        place = await LearnedPlaces(database).place_in(shop.domain_id)
        assert place.path == PATH
        await shop.visit(f"{number}", read(number, place, data="99.00"))
    assert await LearnedPlaces(database).place_in(shop.domain_id) == LearnedPlace(search=True)


async def test_only_some_pages_are_searched_between_two_looks(
    database: Database, settings: Settings
) -> None:
    shop = await Shop(database, settings).open()
    places = LearnedPlaces(database)
    searched = [(await places.place_in(shop.domain_id)).search for _ in range(30)]
    assert searched == [True] * 20 + [False] * 10


DEAL = DATA + """<h1>Lamp {0}</h1><div class="deal">{2}<b class="now">€ {3}</b></div>"""


def read_deal(number: int, place: LearnedPlace, *, struck: bool = True) -> Product:
    """The data states a list price; now and then the page does not show it struck through."""
    stated, now = f"{number + 40}.00", f"{number + 20}.50"
    before = f"<s>€ {stated}</s>" if struck else ""
    page = open_page(
        DEAL.format(number, stated, before, now).encode(),
        f"https://shop.example/deal-{number}",
        "text/html",
    )
    return extract_product(page, place=place)


async def test_where_data_states_list_prices_the_visible_price_decides_from_then_on(
    database: Database, settings: Settings
) -> None:
    shop = await Shop(database, settings).open()
    for number in range(4):
        place = await LearnedPlaces(database).place_in(shop.domain_id)
        assert place.shown_wins is (number == 3)
        await shop.visit(f"{number}", read_deal(number, place))
    place = await LearnedPlaces(database).place_in(shop.domain_id)
    product = read_deal(1, place, struck=False)
    assert product.price == Decimal("21.50")
    assert product.evidence["price"].origin == "learned:b.now"
    # without the decision, this page alone says otherwise
    assert read_deal(1, NOTHING_LEARNED, struck=False).price == Decimal("41.00")
    await shop.visit("1", product)
    assert await shop.rows(
        "SELECT h.price FROM price_history h JOIN products p ON p.id = product_id"
        " WHERE p.url LIKE '%%/1' ORDER BY h.id"
    ) == [(Decimal("21.50"),)]
    # pages that do not strike the stated price through are no evidence against the decision
    for number in range(2, 6):
        place = await LearnedPlaces(database).place_in(shop.domain_id)
        await shop.visit(f"{number}", read_deal(number, place, struck=False))
    assert await shop.row("SELECT path, shown_wins FROM price_templates") == ("b.now", True)
    assert (await LearnedPlaces(database).place_in(shop.domain_id)).shown_wins


async def test_a_decision_about_the_template_is_no_price_change(
    database: Database, settings: Settings
) -> None:
    """A page that was read before the decision; then the data still states what was stored."""
    shop = await Shop(database, settings).open()
    await shop.visit("9", read_deal(9, NOTHING_LEARNED, struck=False))
    await shop.visit("9", read_deal(9, LearnedPlace("b.now", shown_wins=True), struck=False))
    assert await shop.rows("SELECT kind, payload ->> 'new' FROM catalog_events ORDER BY id") == [
        ("product.added", None),
        ("product.reread", "29.50"),
    ]


async def test_a_deal_does_not_end_because_its_list_price_is_not_struck_through(
    database: Database, settings: Settings
) -> None:
    shop = await Shop(database, settings).open()
    searching = LearnedPlace(search=True)
    await shop.visit("1", read_deal(1, searching))
    for _ in range(3):
        assert (await shop.visit("1", read_deal(1, searching, struck=False))).problems
        assert not (await shop.visit("1", read_deal(1, searching))).problems
    assert await shop.rows("SELECT price FROM price_history") == [(Decimal("21.50"),)]


async def test_a_deal_makes_the_template_known_soon(database: Database, settings: Settings) -> None:
    shop = await Shop(database, settings).open()
    places = LearnedPlaces(database)
    for number in range(4):
        await shop.visit(f"{number}", read_deal(number, await places.place_in(shop.domain_id)))
    assert not (await places.place_in(shop.domain_id)).shown_wins
    places.reconsider(shop.domain_id)
    until = places._known[shop.domain_id][0]
    assert until - local_time() <= LOOK_AGAIN


def test_a_template_outlives_one_odd_page_and_not_a_changed_layout() -> None:
    known = PriceTemplate("a", shown_wins=True)
    pages = [ShownPrice(str(n), "a") for n in range(10)]
    odd = ShownPrice("5", "")
    assert decide_template([odd, *pages], known) == known
    assert decide_template([odd, odd, *pages], known) == PriceTemplate("a")
    assert decide_template([odd, odd, odd, odd, *pages], known) is None
    assert decide_template([], known) == known
