"""A filter that means nothing leaves the page as it is, with what is wrong."""

from __future__ import annotations

import re

import pytest

from web.visitor import Visitor

HOSTILE = '"><script>alert(1)</script>'


def told_on(page: str) -> str:
    """The message in place of the rows."""
    shown = re.sub("<noscript>.*?</noscript>", "", page)
    return shown.partition('<p class="notice error" role="alert">')[2].partition("</p>")[0]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/errors", "Errors by message"),
        ("/errors/list", "All errors"),
        ("/dead-letters", "Failed permanently"),
        ("/parsers", "Success by domain"),
    ],
)
async def test_an_unknown_domain_is_reported_on_the_page(
    visitor: Visitor, path: str, words: str
) -> None:
    wrong = {"domain=no.example": "no.example", f"domain={HOSTILE}": "", "cursor=x": "ursor"}
    for query, said in wrong.items():
        page = await visitor.get(f"{path}?{query}")
        assert page.status == 200
        assert words in page.text
        assert told_on(page.text)
        assert said in told_on(page.text)
        assert "<script>alert" not in page.text


async def test_an_invalid_age_is_reported_on_the_page(visitor: Visitor) -> None:
    for path in ("/errors", "/errors/list"):
        page = await visitor.get(f"{path}?hours=x")
        assert page.status == 200
        assert told_on(page.text)
