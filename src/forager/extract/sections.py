"""A page's sections: a tree in pre-order, small enough to be stored and searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from forager.extract.markdown.blocks import Part
from forager.extract.markdown.split import split_markdown

MAX_SECTION_BYTES = 256 * 1024
MAX_SECTIONS = 20_000


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its text. Positions count from 0 in pre-order; the parent is a position."""

    heading: str
    level: int  # 1 to 6 as the page says; 0 for what stands before the first heading
    anchor: str | None
    content: str  # markdown, without the heading and without the sections inside
    position: int
    parent: int | None


def build_sections(parts: Sequence[Part], title: str) -> tuple[tuple[Section, ...], bool]:
    """The sections of a page's parts, and whether there were too many for each to be its own."""
    joined = _with_text(_join_beyond(parts))
    sections: list[Section] = []
    path: list[Section] = []  # the sections around the next one
    for part, content in joined:
        while path and path[-1].level >= part.level:
            path.pop()
        pieces = split_markdown(content, MAX_SECTION_BYTES)
        parent = path[-1].position if path else None
        heading = part.heading or title
        first = Section(heading, part.level, part.anchor, pieces[0], len(sections), parent)
        sections.append(first)
        path.append(first)
        sections.extend(_continued(first, pieces))
    return tuple(sections), len(parts) > MAX_SECTIONS


def _continued(first: Section, pieces: list[str]) -> Iterator[Section]:
    """The rest of a section that is too large: children of it, so that pre-order holds."""
    level = first.level + 1
    for number, piece in enumerate(pieces[1:], start=1):
        position = first.position + number
        yield Section(first.heading, level, first.anchor, piece, position, first.position)


def _with_text(parts: Sequence[Part]) -> list[tuple[Part, str]]:
    """The parts with their contents, without headings that have neither text nor children."""
    kept: list[tuple[Part, str]] = []
    following = 0  # the level of the section after this one, which is its child if it is deeper
    for part in reversed(parts):
        content = part.content()
        if content or following > part.level > 0:
            kept.append((part, content))
            following = part.level
    kept.reverse()
    return kept


def _join_beyond(parts: Sequence[Part]) -> Sequence[Part]:
    if len(parts) <= MAX_SECTIONS:
        return parts
    last = parts[MAX_SECTIONS - 1]
    text = join_parts([Part(0, blocks=last.blocks), *parts[MAX_SECTIONS:]])
    joined = Part(last.level, last.heading, last.markdown_heading, last.anchor, [text])
    return [*parts[: MAX_SECTIONS - 1], joined]


def join_parts(parts: Sequence[Part]) -> str:
    """The markdown of all parts, with their headings."""
    pieces = []
    for part in parts:
        if part.level:
            pieces.append(f"{'#' * part.level} {part.markdown_heading}")
        if part.blocks:
            pieces.append(part.content())
    return "\n\n".join(pieces)


# --- for storage ------------------------------------------------------------------------------

Id = TypeVar("Id")


@dataclass(frozen=True, slots=True)
class IdentifiedSection(Generic[Id]):
    """A section with an id of its own and its parent's, ready to be inserted."""

    id: Id
    parent_id: Id | None
    section: Section


def identify(sections: Sequence[Section], new_id: Callable[[], Id]) -> list[IdentifiedSection[Id]]:
    """Sections with client-side ids, so that parents and children go to the database together."""
    ids = [new_id() for _ in sections]
    return [
        IdentifiedSection(
            ids[section.position],
            None if section.parent is None else ids[section.parent],
            section,
        )
        for section in sections
    ]
