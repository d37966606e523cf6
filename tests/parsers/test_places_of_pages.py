"""What site parsers find by an id: the same as a query through the whole page."""

from __future__ import annotations

import pytest

from forager.extract.product.page import ProductPage, open_page
from forager.parsers.parser import SiteParser

PAGE = b"""<!doctype html><body class=around>
<div id=price class=amount><b class=amount>1</b><i><b class="amount small">2</b></i></div>
<div id=other><b class=amount>3</b></div>
<div id=price><b class=amount>4</b></div>
<div id></div>
"""


def opened() -> ProductPage:
    return open_page(PAGE, "https://shop.example/item/1", "text/html")


@pytest.mark.parametrize(
    "selector",
    [
        "#price",
        "#price .amount",
        "#price i .amount",
        "#price .around .amount",
        "#price b:not(.small)",
        "#price .amount, #other .amount",
        "#price > .amount",
        "#nowhere .amount",
        "#other",
        "#price #other",
        "b.amount",
    ],
)
def test_an_id_finds_what_a_query_finds(selector: str) -> None:
    page = opened()
    found = [node.mem_id for node in SiteParser(page).nodes(selector)]
    assert found == [node.mem_id for node in page.tree.css(selector)]


def test_selectors_are_asked_in_their_order() -> None:
    texts = list(SiteParser(opened()).texts("#nowhere", "#other", "#price .small"))
    assert texts == ["3", "2"]


def test_the_text_of_a_place_is_what_is_shown() -> None:
    body = b"<p id=a>one<b>two</b> three</p><p id=b>four<script>x</script><i>five</i></p><p id=c>"
    parser = SiteParser(open_page(body, "https://shop.example/item/1", "text/html"))
    assert list(parser.texts("#a", "#b", "#c")) == ["one two three", "four five"]
