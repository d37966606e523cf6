"""Work grows with the size of a page and not with its square: calls are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from forager.extract.document import extract_reading
from forager.extract.product.extract import extract_product
from forager.extract.product.page import open_page
from hostile.pages import (
    HTML,
    HostilePage,
    attributes,
    bidi,
    closed,
    comments,
    entities,
    formatting,
    headings,
    links,
    lists,
    misnested,
    nested,
    nested_tables,
    page,
    script_as_text,
    spans,
    table,
    wide_and_narrow_rows,
)

URL = "http://a.example/x"
SIZE = 300
TIMES = 4
# what is read once, whatever the page's size, is in both counts
TOLERANCE = 1.4

Build = Callable[[int], HostilePage]


def nesting(tag: str) -> Build:
    return lambda depth: nested(tag, depth)


def repeated(markup: str) -> Build:
    return lambda count: page(markup * count)


def scripts(text: str) -> Build:
    return lambda count: page(f"<script>window.state = [{text * count}0]</script>")


def linked(text: str) -> Build:
    start = (
        '<script type="application/ld+json">{"@type": "ProductGroup", "name": "x", "hasVariant": ['
    )
    return lambda count: page(f"{start}{text * count}{{}}]}}</script>")


def chained(count: int) -> HostilePage:
    """Items that refer to one another in a row."""
    items = (
        f'{{"@id":"{n}","@type":"Product","isVariantOf":{{"@id":"{n + 1}"}}}}' for n in range(count)
    )
    return page(f'<script type="application/ld+json">{{"@graph":[{",".join(items)}]}}</script>')


GROWING: dict[str, Build] = {
    **{
        f"{tag} in {tag}": nesting(tag)
        for tag in (
            "div", "span", "b", "font", "a href=x", "button", "p", "h2", "li", "code", "pre", "q",
            "section", "article", "main", "blockquote", "details", "dl><dd", "ol><li", "svg",
            "math", "template", "noscript", "select><option", "ruby><rt", "form", "label",
            "span itemscope itemprop=offers", "span typeof=Product property=offers",
        )
    },
    **{
        markup: repeated(markup)
        for markup in (
            "<p>a", "x<!-- -->", "<p>a<br>b", "<b>a</b><i>b</i><code>c</code> ",
            "<li><p>a<pre>b\nc</pre>",
            "<nav><a href=x>y</a></nav><p>x", "<a href=/x>y</a>", "<img src=/a.jpg alt=x>",
            "<p class=price>£9.99</p>", "<div><span class=price>£9</span> <del>£12</del></div>",
            "<dl><dt>Brand<dd>x</dl>", "SKU: ab-12<br>Brand: x<br>", "<h1>Kettle</h1>",
            "<ol class=breadcrumb><li><a href=/x>a</a></ol>", "<p class=stock>In stock</p>",
            "<span class=stars title='4/5'></span>", "<meta property=og:title content=x>",
            "<link rel=canonical href=/x>", "<script>var a={price:9,sku:'x'}</script>",
            "<div itemscope itemtype='http://schema.org/Product'><b itemprop=name>x</b></div>",
            "<pre>x\ny</pre>", "<table><tr><td>a</table>", "<template id=B:0></template>",
        )
    },
    "closed quotes": lambda n: closed("blockquote", n),
    "lists": lists,
    "tables in tables": nested_tables,
    "attributes": attributes,
    "rows": lambda n: table(n, 3),
    "columns": lambda n: table(3, n),
    "spanning cells": spans,
    "empty rows and a wide one": wide_and_narrow_rows,
    "links": links,
    "headings": headings,
    "formatting": formatting,
    "misnested formatting": misnested,
    "entities": entities,
    "bidirectional text": bidi,
    "comments": comments,
    "scripts as text": script_as_text,
    "objects of a script": scripts('{"price": 9, "sku": "a", "name": "k"},'),
    "variants": linked('{"@type": "Product", "sku": "1", "offers": {"price": 1}},'),
    "items in a row": chained,
    "lines of code": lambda n: page(f"<pre>{'<span>x</span>' * n}\n{'y' * n}</pre>"),
}  # fmt: skip


def calls_of(work: Callable[[HostilePage], object], given: HostilePage) -> int:
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work(given)
    finally:
        sys.setprofile(before)
    return count


def read_document(given: HostilePage) -> object:
    return extract_reading(given.body, URL, HTML)


def read_product(given: HostilePage) -> object:
    return extract_product(open_page(given.body, URL, HTML))


@pytest.mark.parametrize("work", [read_document, read_product])
@pytest.mark.parametrize("name", GROWING)
def test_work_grows_with_the_size(name: str, work: Callable[[HostilePage], object]) -> None:
    build = GROWING[name]
    work(build(1))  # imports, and what is remembered between pages
    small, large = (calls_of(work, build(size)) for size in (SIZE, TIMES * SIZE))
    assert large <= TIMES * TOLERANCE * small, f"{small} calls became {large}"
