"""Events of sources and crawls as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forager.amounts import counted
from forager.events.event import EventKind

_COUNTS = ("added", "changed", "removed", "carried_over")
# pages of a change that a message lists
LISTED = 20


def source_summary(kind: str, data: Mapping[str, Any]) -> str:
    """Describe an event in one line; empty for other kinds."""
    match kind:
        case EventKind.SOURCE_PUBLISHED:
            verb = "rolled back to" if data.get("rolled_back") else "published"
            return f"{verb} generation {data.get('generation')} with {_pages(data)}"
        case EventKind.SOURCE_HELD_BACK:
            return f"generation {data.get('generation')} is held back: {data.get('reason')}"
        case EventKind.SOURCE_CHANGED:
            pages = data.get("pages") or []
            number = counted(len(pages) + int(data.get("more") or 0), "page")
            matching = f" matching {data['pattern']}" if data.get("pattern") else ""
            more = "; not all changes were compared" if data.get("truncated") else ""
            return f"{number}{matching} changed in generation {data.get('generation')}{more}"
        case EventKind.CRAWL_FAILED:
            return f"job {data.get('job')} failed: {data.get('reason')}"
        case EventKind.CRAWL_STALLED:
            return f"job {data.get('job')} has not progressed since {data.get('since')}"
        case _:
            return ""


def _pages(data: Mapping[str, Any]) -> str:
    pages = counted(int(data.get("pages") or 0), "page")
    if data.get("previous_generation") is None:
        return pages
    parts = [f"{data[name]} {name.replace('_', ' ')}" for name in _COUNTS if data.get(name)]
    return f"{pages}: {', '.join(parts) or 'nothing changed'}"


def source_lines(kind: str, data: Mapping[str, Any]) -> Iterator[str]:
    """Describe an event in several lines."""
    yield source_summary(kind, data)
    if data.get("warning"):
        yield f"Warning: {data['warning']}"
    pages: Sequence[Mapping[str, Any]] = data["pages"] if kind == EventKind.SOURCE_CHANGED else ()
    for page in pages[:LISTED]:
        yield f"{page.get('change')}: {page.get('url')}"
        for section in page.get("sections") or ():
            yield f"  {section.get('change')} section: {section.get('heading') or '(no heading)'}"
    if rest := len(pages[LISTED:]) + int(data.get("more") or 0):
        yield f"and {counted(rest, 'more page')}"
    if data.get("difference"):
        yield f"Difference: {data['difference']}"
