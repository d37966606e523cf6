"""What a section is found by besides its words: the page's title, and identifiers as typed."""

from __future__ import annotations

from forager.documents.page import ExtractedDocument, ExtractedSection, SectionNames
from forager.extract.identifiers import identifier_lexemes


def section_names(document: ExtractedDocument) -> list[SectionNames]:
    """The identifiers of each section. Pure, so that it can be done where pages are read."""
    return [_names(document, section) for section in document.sections]


def head_of(document: ExtractedDocument, section: ExtractedSection) -> str:
    """The heading as search sees it: the first section is found by the page's title too."""
    if section.position or not document.title or document.title == section.heading:
        return section.heading
    return f"{document.title}\n{section.heading}"


def _names(document: ExtractedDocument, section: ExtractedSection) -> SectionNames:
    head = head_of(document, section)
    return SectionNames(identifier_lexemes(head), identifier_lexemes(f"{head}\n{section.content}"))
