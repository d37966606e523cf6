"""Crawled content that is expensive to show does not stop the server."""

from __future__ import annotations

import asyncio
import operator
import time

import pytest

from built_site import BASE, SOURCE, Crawls
from forager.db.database import Database
from forager.documents.diff import diff_generations
from forager.errors import GiveUp
from forager.processes.calls import call_limited
from forager.processes.sandbox import SandboxLimits
from forager.web.content import MAX_CHARACTERS, render_diffs, render_sections
from forager.web.markdown import LINEAR, MAX_HIGHLIGHTED, find_lexer
from web.visitor import Answer, Visitor

READ = f"/read?url={BASE}a&source={SOURCE}"
# lines whose comparison is cubic: few different ones, in an order that never matches for long
HOSTILE_OLD = "\n".join(str(n % 97) for n in range(1900))
HOSTILE_NEW = "\n".join(str((n * n) % 89) for n in range(1900))


async def answers_beside(visitor: Visitor, path: str) -> tuple[Answer, int]:
    """The page, and how many times the server was found alive before it came."""
    page = asyncio.create_task(visitor.get(path))
    alive = 0
    while not page.done():
        assert (await visitor.get("/healthz")).status == 200
        alive += not page.done()
    return await page, alive


async def test_code_of_a_slow_language_is_shown_without_colors(
    visitor: Visitor, crawls: Crawls
) -> None:
    block = "```amdgpu\n" + "a" * 49_000 + "\n```\n\n"
    await crawls.crawl({"a": block * 2})
    page, _ = await answers_beside(visitor, READ)
    assert page.status == 200
    assert page.text.count("a" * 49_000) >= 2
    assert 'class="language-amdgpu"' in page.text


async def test_a_huge_table_is_shown_as_plain_text(visitor: Visitor, crawls: Crawls) -> None:
    table = "| a | b |\n|---|---|\n" + "| one | two |\n" * 400_000
    await crawls.crawl({"a": table})
    page, _ = await answers_beside(visitor, READ)
    assert page.status == 200
    assert "Shown as plain text because it is very long" in page.text
    assert "| one | two |" in page.text


async def test_a_large_page_is_rendered_outside_of_the_event_loop(
    visitor: Visitor, crawls: Crawls
) -> None:
    await crawls.crawl({"a": "| a | b |\n|---|---|\n" + "| one | **two** |\n" * 6_000})
    page, alive = await answers_beside(visitor, READ)
    assert page.text.count("<strong>two</strong>") >= 6_000
    assert alive > 2


async def test_a_hostile_diff_does_not_stop_the_server(
    visitor: Visitor, crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": f"```\n{HOSTILE_OLD}\n```", "b": "same"})
    await crawls.crawl({"a": f"```\n{HOSTILE_NEW}\n```", "b": "same"})
    for path in (
        f"{READ}&tab=changes",
        f"/sources/{SOURCE}/diff",
        f"/sources/{SOURCE}/diff?view=side",
    ):
        page, alive = await answers_beside(visitor, path)
        assert page.status == 200
        assert alive > 2
    [changed] = (await diff_generations(database, SOURCE, with_sections=True)).changed
    assert changed.sections


async def test_what_exceeds_the_limits_is_shown_as_plain_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def exceeds(*_: object) -> None:
        raise GiveUp("it takes too long")

    monkeypatch.setattr("forager.web.content.call_limited", exceeds)
    [shown] = await render_sections(["<b>*x*</b>" * 5_000])
    assert shown.startswith('<p class="muted">Shown as plain text')
    assert "<b>" not in shown
    [shown] = await render_diffs(["--- old\n+++ new\n-<b>\n" * 1_000], side=True)
    assert "<b>" not in shown


async def test_nothing_is_rendered_above_a_size() -> None:
    first, second = await render_sections(["", "<i>" * MAX_CHARACTERS])
    assert first == "<pre></pre>"
    assert "very long" in second
    assert "<i>" not in second


async def test_a_call_that_never_ends_is_given_up() -> None:
    with pytest.raises(GiveUp, match="longer than"):
        await call_limited(time.sleep, 3600, limits=SandboxLimits(seconds=0.5))


async def test_a_call_that_fails_names_the_error() -> None:
    with pytest.raises(GiveUp, match="ZeroDivisionError"):
        await call_limited(operator.truediv, 1, 0)
    assert await call_limited(operator.truediv, 6, 3) == 2


@pytest.mark.parametrize("language", ["amdgpu", "markdown", "rst", "no-such-language", ""])
def test_lexers_that_may_take_minutes_are_not_used(language: str) -> None:
    assert find_lexer(language, 10) is None


def test_lexers_are_used_up_to_their_length() -> None:
    for alias in MAX_HIGHLIGHTED:
        longest = 20_000 if alias in LINEAR.split() else 2_000
        assert find_lexer(alias, longest) is not None, alias
        assert find_lexer(alias, longest + 1) is None, alias
    assert find_lexer("js", 2_000) is not None
