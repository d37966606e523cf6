"""The page of questions to the lake."""

from __future__ import annotations

from web.visitor import Visitor

HOSTILE = '"><script>alert(1)</script>'


async def test_a_question_is_chosen_and_asked(visitor: Visitor) -> None:
    page = (await visitor.get("/analytics")).text
    assert "Nothing was copied yet" in page
    assert '<option value="price-changes" selected>' in page
    page = (await visitor.get("/analytics?query=crawl-cost&days=7")).text
    assert '<option value="crawl-cost" selected>' in page


async def test_what_is_typed_is_only_text(visitor: Visitor) -> None:
    for field in ("query", "days"):
        page = await visitor.get("/analytics", params={field: HOSTILE})
        assert page.status == 200
        assert 'class="notice error"' in page.text
        assert "<script>alert" not in page.text
