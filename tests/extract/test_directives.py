from __future__ import annotations

import pytest

from forager.extract.directives import Directives, header_directives, meta_directives

BOTH = Directives(noindex=True, nofollow=True)
NOINDEX = Directives(noindex=True)
NOFOLLOW = Directives(nofollow=True)
NOTHING = Directives()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], NOTHING),
        (["noindex"], NOINDEX),
        (["NoIndex , NOFOLLOW"], BOTH),
        (["none"], BOTH),
        (["noindex", "nofollow"], BOTH),
        (["googlebot: noindex"], NOTHING),
        (["forager: noindex"], NOINDEX),
        (["Forager: noindex, nofollow"], BOTH),
        (["googlebot: noindex, forager: nofollow"], NOFOLLOW),
        (["nofollow, otherbot: noindex"], NOFOLLOW),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], NOINDEX),
        (["max-snippet: 20, nofollow"], NOFOLLOW),
        (["all"], NOTHING),
        ([",,:,"], NOTHING),
    ],
)
def test_header(values: list[str], expected: Directives) -> None:
    assert header_directives(values) == expected


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("robots", "noindex,follow", NOINDEX),
        ("ROBOTS", " NONE ", BOTH),
        ("forager", "nofollow", NOFOLLOW),
        ("googlebot", "noindex", NOTHING),
        ("description", "noindex", NOTHING),
    ],
)
def test_meta(name: str, content: str, expected: Directives) -> None:
    assert meta_directives(name, content) == expected


def test_another_agent_has_its_own_rules() -> None:
    assert header_directives(["shopbot: noindex"], "ShopBot") == NOINDEX
    assert meta_directives("forager", "noindex", "shopbot") == NOTHING
