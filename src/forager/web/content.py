"""Crawled content as HTML, made outside the event loop.

Small content is rendered in a thread, larger content in a process with limits, and content beyond
all bounds is shown as plain text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from forager.errors import WorkFailed, error_text
from forager.logs import get_logger
from forager.processes.calls import call_limited
from forager.web.markdown import sections_to_html
from forager.web.word_diff import changes_to_html, diffs_to_html

log = get_logger("web")

# characters of a page that are rendered in a thread: less than a second, however hostile
IN_THREAD = 40_000
# comparing words is more expensive than rendering
DIFF_IN_THREAD = 5_000
# characters of a page or diff that are rendered at all
MAX_CHARACTERS = 500_000
PLAIN = Markup('<p class="muted">Shown as plain text because {}.</p><pre>{}</pre>')


async def render_sections(texts: Sequence[str]) -> list[Markup]:
    """Sections of a page, from markdown."""
    return await _render(sections_to_html, texts, in_thread=IN_THREAD)


async def render_diffs(diffs: Sequence[str], *, side: bool) -> list[Markup]:
    """Unified diffs, as lines below each other or side by side."""
    return await _render(diffs_to_html, diffs, side, in_thread=DIFF_IN_THREAD)


async def render_changes(pairs: Sequence[tuple[str, str]]) -> list[Markup]:
    """Sections of a page from the markdown of two versions, with the changed words marked."""
    texts = [text for pair in pairs for text in pair]
    return await _render(changes_to_html, texts, in_thread=DIFF_IN_THREAD, step=2)


async def _render(
    function: Callable[..., list[str]],
    texts: Sequence[str],
    *options: Any,
    in_thread: int,
    step: int = 1,
) -> list[Markup]:
    """One result of every `step` texts, of which the last can be shown as plain text."""
    size = sum(map(len, texts))
    shown = texts[step - 1 :: step]
    if size > MAX_CHARACTERS:
        return _plain(shown, "it is very long")
    try:
        if size <= in_thread:
            made = await asyncio.to_thread(function, texts, *options)
        else:
            made = await call_limited(function, texts, *options)
    except (WorkFailed, OSError) as error:
        log.warning("crawled content is shown as plain text", reason=error_text(error))
        return _plain(shown, "it takes too long to render")
    return [Markup(html) for html in made]  # noqa: S704 - all functions escape every text


def _plain(texts: Sequence[str], reason: str) -> list[Markup]:
    """Every text escaped, and the reason at the first one."""
    first = next((index for index, text in enumerate(texts) if text), -1)
    rest = Markup("<pre>{}</pre>")
    return [
        PLAIN.format(reason, text) if index == first else rest.format(text)
        for index, text in enumerate(texts)
    ]
