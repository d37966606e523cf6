"""What extraction left out of a page, and by which rule: for reports, and for the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from forager.extract.content.boilerplate import ElementVerdict
from forager.extract.content.choose import MainContent
from forager.extract.content.removal import is_dropped
from forager.extract.content.repeated import block_text
from forager.extract.document import RemovedBlock
from forager.extract.markdown.tokens import Tokens, spaced_text

PHRASE = "a phrase of buttons, labels and notices"
CODE = "pre"  # the element of parts that were cut from code


def explain_removed(
    tokens: Tokens,
    main: MainContent,
    marked: Mapping[int, int],
    pages: int,
    phrases: Iterable[str],
    contents: Iterable[str] = (),
) -> tuple[RemovedBlock, ...]:
    """All that is not in the document, in the order of the page; the same text is listed once.

    `contents` are tables of contents in markdown.
    `marked` are the blocks that repeat on other pages of the source, `pages` those of its sample.
    """
    found = Counter(_elements(tokens, main, marked, pages))
    found.update(RemovedBlock(phrase, "text", PHRASE) for phrase in phrases)
    found.update(RemovedBlock(text, CODE, reason) for (_, reason), text in tokens.cut.items())
    found.update(RemovedBlock(text, "text", ElementVerdict.CONTENTS.value) for text in contents)
    return tuple(
        RemovedBlock(block.text, block.element, block.reason, count)
        for block, count in found.items()
    )


def _elements(
    tokens: Tokens, main: MainContent, marked: Mapping[int, int], pages: int
) -> Iterator[RemovedBlock]:
    outside = f"outside the main content, which was found by: {main.rule}"
    yield from _outside(tokens, 0, main.start, outside)
    for index in sorted({*tokens.removed, *marked}):
        reason = tokens.removed.get(index, "")
        if index in marked:
            reason = f"on {marked[index]} of {pages} pages of its source"
            reason += "" if is_dropped(tokens, index) else "; kept because of what follows it"
        if text := block_text(tokens, index):
            tag = tokens.tags[index]
            yield RemovedBlock(text, tag.place or tag.name, reason)
    yield from _outside(tokens, main.end, len(tokens.tags) - 1, outside)


def _outside(tokens: Tokens, start: int, end: int, reason: str) -> Iterator[RemovedBlock]:
    if text := spaced_text(tokens, start, end):
        yield RemovedBlock(text, "body", reason)
