"""A site from a seed: the same again, and no page of it out of reach."""

from __future__ import annotations

import pytest

from chaos.truth import OUTCOMES, Kind, make_pages


@pytest.mark.parametrize("count", [1, 7, 40, 750])
def test_every_page_is_linked_from_one_that_has_links(count: int) -> None:
    pages = make_pages(7, "docs", count)
    assert len(pages) == count
    reached, waiting = {"/"}, ["/"]
    while waiting:
        page = pages[waiting.pop()]
        if page.kind not in OUTCOMES:
            new = set(page.links) - reached
            reached |= new
            waiting += new
    assert reached == set(pages)


def test_a_seed_makes_the_same_site_again() -> None:
    assert make_pages(7, "docs", 200) == make_pages(7, "docs", 200)
    assert make_pages(7, "docs", 200) != make_pages(8, "docs", 200)


def test_there_are_pages_of_every_kind() -> None:
    pages = make_pages(7, "docs", 750)
    assert {page.kind for page in pages.values()} == set(Kind)
    for page in pages.values():
        if page.kind is Kind.MOVED:
            assert pages[page.moved_to].kind not in OUTCOMES
