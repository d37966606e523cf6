"""What a section is found by besides its words: the page's title, and identifiers as typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from forager.documents.page import ExtractedDocument, ExtractedSection, SectionNames
from forager.extract.identifiers import (
    MAX_IDENTIFIERS,
    Container,
    container_of,
    identifier_lexemes,
    qualified_names,
)


class ReadableSection(Protocol):
    """A section as it was extracted or stored."""

    @property
    def heading(self) -> str: ...
    @property
    def level(self) -> int: ...
    @property
    def anchor(self) -> str | None: ...
    @property
    def content(self) -> str: ...


def section_names(document: ExtractedDocument) -> list[SectionNames]:
    """The identifiers of each section. Pure, so that it can be done where pages are read."""
    container = page_container(document.title, document.sections)
    return [_names(document, section, container) for section in document.sections]


def page_container(title: str | None, sections: Sequence[ReadableSection]) -> Container:
    """The type or module that a page is about."""
    lead = sections[0].content if sections and not sections[0].level else ""
    first = next((section.heading for section in sections if section.level), "")
    return container_of(title, first, lead)


def head_of(document: ExtractedDocument, section: ExtractedSection) -> str:
    """The heading as search sees it: the first section is found by the page's title too."""
    if section.position or not document.title or document.title == section.heading:
        return section.heading
    return f"{document.title}\n{section.heading}"


def defined_names(section: ReadableSection, container: Container) -> list[str]:
    """The names that a section is about, in lower case: by its heading, and qualified."""
    qualified = qualified_names(container, section.heading, section.anchor)
    heading = identifier_lexemes(section.heading.partition("(")[0])
    return [*heading, *(name.lower() for name in qualified)]


def _names(
    document: ExtractedDocument, section: ExtractedSection, container: Container
) -> SectionNames:
    defined = qualified_names(container, section.heading, section.anchor)
    heading = dict.fromkeys(identifier_lexemes(head_of(document, section)))
    heading.update(dict.fromkeys(map(str.lower, defined)))
    everything = heading | dict.fromkeys(identifier_lexemes(section.content))
    return SectionNames(list(heading), list(everything)[:MAX_IDENTIFIERS])
