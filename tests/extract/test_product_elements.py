"""The one walk of a page, and the texts in it."""

from __future__ import annotations

from forager.extract.product.dom.codes import shown_spellings
from forager.extract.product.dom.view import DomView
from forager.extract.product.elements import Elements, collect_elements
from forager.extract.product.page import ProductPage, open_page


def opened(body: str) -> ProductPage:
    return open_page(
        f"<!doctype html><head></head><body>{body}".encode(), "https://shop.example/item/1"
    )


def elements(body: str) -> Elements:
    return collect_elements(opened(body).tree)


def test_comments_are_no_elements() -> None:
    bare, commented = elements("<p><h1>Lamp</h1>"), elements("<!-- a --><p><!-- b --><h1>Lamp</h1>")
    assert [e.order for e in bare.headings] == [e.order for e in commented.headings]


def test_an_element_is_filed_by_all_its_names() -> None:
    found = elements('<p class="Price" id="stock-now" data-testid="Brand-Box">x</p>')
    filed = [found.prices, found.stocks, found.brands]
    assert [len(kept) for kept in filed] == [1, 1, 1]
    assert {kept[0].names for kept in filed} == {"price stock-now brand-box"}


def test_names_for_tests_count_like_classes() -> None:
    (element,) = elements('<p data-qa="x" data-test="Price">x</p>').prices
    assert element.names.split() == ["price", "x"]


def test_a_code_in_an_attribute_is_filed_once() -> None:
    found = elements('<p class="sku" data-sku="4711" data-pid="12">x</p><p data-pid="3">y</p>')
    assert [e.node.text() for e in found.skus] == ["x", "y"]


def test_a_role_makes_a_button_of_anything_but_a_button() -> None:
    found = elements("<a role=button>a</a><button role=button>b</button><a role=img>c</a><a role>")
    assert sorted(e.node.text() for e in found.buttons) == ["a", "b"]


def test_a_meta_is_annotated_only_by_microdata() -> None:
    found = elements(
        "<meta itemprop=price content=1><meta property=x content=2><b property=y>z</b>"
    )
    assert len(found.microdata) == 1
    assert [e.node.tag for e in found.rdfa] == ["b"]


def test_state_in_attributes_is_kept() -> None:
    found = elements("""<p data-product='{"a": 1}' data-item='no'>x</p>""")
    assert found.json_attributes == ['{"a": 1}']


def test_texts_are_those_that_are_shown() -> None:
    page = opened(
        "<script>var a</script>one<style>b</style><p>two<select><option>c</option></select>"
        "<script src=x></script>three<textarea>d</textarea><noscript>e</noscript>" + "x" * 400
    )
    assert [text for _, _, text in DomView(page).texts] == ["one", "two", "three"]


def test_the_title_is_that_of_the_head() -> None:
    page = open_page(
        b"<title>Lamp</title><body><svg><title>Cart</title></svg>", "https://shop.example/"
    )
    assert page.title == "Lamp"
    assert open_page(b"<svg><title>Cart</title></svg>", "https://shop.example/").title is None


def test_comments_do_not_move_texts() -> None:
    bare, commented = elements("<p><b>x</b>"), elements("<!-- a --><p><!-- b --><!-- c --><b>x</b>")
    assert [order for order, _, _ in bare.texts] == [order for order, _, _ in commented.texts]


def test_a_code_known_in_both_spellings_gets_no_third() -> None:
    view = DomView(opened("<h1>Lamp</h1><p>203.604.40</p>"))
    assert list(shown_spellings(view, ["203.604.40", "20360440"])) == []
    assert [fact.value for fact in shown_spellings(view, ["20360440"])] == ["203.604.40"]
