"""The product of a page: every reader's facts, and a site parser's, merged into one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from forager.extract.product.address import address_facts
from forager.extract.product.annotated import MICRODATA, RDFA, read_annotations
from forager.extract.product.dom.crumbs import crumb_facts, trim
from forager.extract.product.dom.labels import label_facts, line_facts
from forager.extract.product.dom.pictures import picture_facts
from forager.extract.product.dom.prices import price_facts
from forager.extract.product.dom.stars import star_facts
from forager.extract.product.dom.stock import stock_facts, text_stock_facts
from forager.extract.product.dom.view import View
from forager.extract.product.fact import Fact, FieldName
from forager.extract.product.main_item import choose_main
from forager.extract.product.merge import merge
from forager.extract.product.meta import meta_facts
from forager.extract.product.page import ProductPage
from forager.extract.product.record import Product
from forager.extract.product.schema import Item, facts_of, listed, text_of, types_of
from forager.extract.product.script.state import state_facts
from forager.extract.product.wording import category_of, name_of


def extract_product(page: ProductPage, overrides: Iterable[Fact] = ()) -> Product:
    """The merged product; `overrides` are the facts of a site parser, and win field by field."""
    return merge((*find_facts(page), *overrides), page)


def find_facts(page: ProductPage) -> tuple[Fact, ...]:
    """What every place of the page claims about its product."""
    facts = [*_structured_facts(page), *meta_facts(page), *address_facts(page)]
    view = View(page)
    facts.extend(price_facts(view, known=_known(FieldName.PRICE, facts, 0.7)))
    facts.extend(_visible_facts(view))
    if not (_known(FieldName.PRICE, facts, 0.6) and _known(FieldName.SKU, facts, 0.6)):
        facts.extend(state_facts(page, facts))
    if not _known(FieldName.AVAILABILITY, facts, 0.5):
        facts.extend(text_stock_facts(view))
    if not _known(FieldName.IMAGES, facts, 0.5):
        facts.extend(picture_facts(view))
    if not (_known(FieldName.SKU, facts, 0.6) and _known(FieldName.BRAND, facts, 0.5)):
        facts.extend(line_facts(view))
    return tuple(facts)


def _known(field: FieldName, facts: Iterable[Fact], confidence: float) -> bool:
    return any(fact.field is field and fact.confidence >= confidence for fact in facts)


def _structured_facts(page: ProductPage) -> Iterator[Fact]:
    yield from _item_facts(page.linked_data, "json-ld", 0.92, page)
    microdata = read_annotations(page.elements.microdata, MICRODATA)
    yield from _item_facts(microdata.items, "microdata", 0.88, page)
    if microdata.orphans.get("price") or microdata.orphans.get("offers"):
        yield from facts_of(_adopted(microdata.orphans), "microdata:orphan", 0.6, page)
    if page.elements.rdfa:
        rdfa = read_annotations(page.elements.rdfa, RDFA)
        yield from _item_facts(rdfa.items, "rdfa", 0.85, page)


def _item_facts(
    items: Iterable[Item], place: str, trust: float, page: ProductPage
) -> Iterator[Fact]:
    known = list(items)
    main = choose_main(known, page)
    if main is not None:
        yield from facts_of(main.item, f"{place}:Product", trust * main.sureness, page)
    for item in known:
        if "breadcrumblist" in types_of(item):
            path = trim(category_of(_crumbs(item)), page.titles)
            if path:
                yield Fact(FieldName.CATEGORY, path, trust * 0.85, f"{place}:BreadcrumbList")
                return


def _crumbs(item: Item) -> list[str | None]:
    elements = [each for each in listed(item.get("itemListElement"))[:40] if isinstance(each, dict)]
    return [name_of(text_of(each.get("name")) or text_of(each.get("item"))) for each in elements]


def _adopted(orphans: Item) -> Item:
    """Properties without an item: a price among them is an offer's."""
    item = {name: value for name, value in orphans.items() if name != "name"}
    if "offers" not in item:
        item["offers"] = {
            name: value for name, value in orphans.items()
            if name in ("price", "priceCurrency", "availability", "lowPrice", "sku")
        }  # fmt: skip
    return item


def _visible_facts(view: View) -> Iterator[Fact]:
    if view.heading is not None and (name := name_of(view.heading.node.text(separator=" "))):
        yield Fact(FieldName.NAME, name, 0.65, "dom:h1")
    for read in (stock_facts, label_facts, crumb_facts, star_facts):
        yield from read(view)
