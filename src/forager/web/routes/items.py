"""Items: the same article in all shops, suggestions to confirm, and the price index."""

from __future__ import annotations

from collections import defaultdict
from urllib.parse import urlencode

from forager.db.cursor import Page
from forager.errors import InvalidInput
from forager.products.filters import Filters
from forager.products.items.item import (
    IndexPoint,
    Item,
    item_numbers,
    link_offers,
    list_items,
    price_index,
    show_item,
    suggest_links,
    unlink_offer,
)
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, cached, new_router, page
from forager.web.visit import OperatorVisit, ReaderVisit, WebVisit

router = new_router()

PAGE_SIZE = 20
NARROWED = ("brand", "category", "domain")
SHOWN = {
    "": "all", "several": "in several shops", "gone": "out of stock everywhere",
    "undercut": "below the own price",
}  # fmt: skip
TABS = {"/items": "Items", "/items/suggestions": "Suggestions", "/items/index": "Price index"}


@page(router, "/items")
async def list_all(visit: ReaderVisit) -> WebPage:
    found: Page[Item] = Page([], None)
    problem = None
    try:
        found = (await cached(visit, lambda: _found(visit), "items")).answer
    except InvalidInput as error:
        problem = error
    numbers = (await cached(visit, lambda: item_numbers(visit.database), "numbers")).answer
    return WebPage(
        "items.html",
        tabs=_tabs("/items"),
        found=found,
        numbers=numbers,
        problem=problem,
        shown=list(SHOWN.items()),
        is_narrowed=any(visit.asked.text(name) for name in (*NARROWED, "currency", "show")),
        export=_export(visit, "items"),
    )


async def _found(visit: WebVisit) -> Page[Item]:
    form = visit.asked
    show = form.text("show")
    return await list_items(
        visit.database,
        _filters(form),
        currency=form.optional("currency"),
        min_shops=2 if show == "several" else 1,
        out_of_stock=show == "gone",
        undercut=show == "undercut",
        cursor=form.optional("cursor"),
        limit=PAGE_SIZE,
    )


def _filters(form: Form) -> Filters:
    return Filters(
        brand=form.optional("brand"),
        category=form.optional("category"),
        domain=form.optional("domain"),
    )


def _export(visit: WebVisit, content: str) -> str:
    query = {name: text for name in NARROWED if (text := visit.asked.text(name))}
    return urlencode({"content": content, **query})


def _tabs(current: str) -> list[tuple[str, str, bool, None]]:
    return [(path, name, path == current, None) for path, name in TABS.items()]


@page(router, "/items/show")
async def show(visit: ReaderVisit) -> WebPage:
    """The item of a key, a GTIN, or the ID or URL of one of its products."""
    which, currency = visit.asked.text("item"), visit.asked.optional("currency")
    return WebPage("item.html", found=await show_item(visit.database, which, currency=currency))


@page(router, "/items/suggestions")
async def suggestions(visit: ReaderVisit) -> WebPage:
    found = await suggest_links(visit.database, **visit.paging)
    return WebPage("item_suggestions.html", tabs=_tabs("/items/suggestions"), found=found)


@page(router, "/items/index")
async def index(visit: ReaderVisit) -> WebPage:
    points = (
        await cached(visit, lambda: price_index(visit.database, _filters(visit.asked)))
    ).answer
    by_category: dict[str | None, list[IndexPoint]] = defaultdict(list)
    for point in points:
        by_category[point.category].append(point)
    return WebPage(
        "item_index.html",
        tabs=_tabs("/items/index"),
        categories=list(by_category.items()),
        is_narrowed=any(visit.asked.text(name) for name in NARROWED),
        export=_export(visit, "index"),
    )


@action(router, "/items/link")
async def link(visit: OperatorVisit, form: Submitted) -> Done:
    item = await link_offers(visit.database, form.text("product"), form.text("to"))
    return Done("Linked.", to=_path(item))


@action(router, "/items/unlink")
async def unlink(visit: OperatorVisit, form: Submitted) -> Done:
    item = await unlink_offer(visit.database, form.text("product"))
    return Done("The product is a separate item now.", to=_path(item))


def _path(item: str) -> str:
    return f"/items/show?{urlencode({'item': item})}"
