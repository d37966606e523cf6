"""Documents as an extraction process returns them, packed and unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import orjson

from forager.documents.names import section_names
from forager.documents.page import IndexedDocument, SectionNames
from forager.extract.document import Document, Reading, extractor_version
from forager.extract.sections import Section
from forager.extract.simhash import simhash


def document_of(reading: Reading, digest: str = "") -> Document:
    """What a page says. One that says nothing is a page all the same, with its title."""
    if reading.document is not None:
        return reading.document
    facts = reading.facts
    title = facts.title or facts.url
    return Document(
        title=title,
        language=facts.language,
        markdown="",
        sections=(),
        content_hash=sha256(title.encode()).digest(),
        extractor_version=extractor_version(digest),
        chosen_by="the page has no content",
    )


def pack_document(document: Document) -> bytes:
    """As bytes for another process. Identifiers are looked for here, beside the parsing."""
    names = section_names(document.title, document.sections)
    return orjson.dumps(
        {
            "title": document.title,
            "language": document.language,
            "content_hash": document.content_hash.hex(),
            "extractor_version": document.extractor_version,
            "sections": [_section(section) for section in document.sections],
            "names": [(each.heading, each.section, each.kind) for each in names],
            "simhash": simhash(document.markdown),
        }
    )


def _section(section: Section) -> Sequence[object]:
    return (
        section.heading,
        section.level,
        section.anchor,
        section.content,
        section.position,
        section.parent,
    )


def unpack_document(packed: bytes) -> IndexedDocument:
    fields = orjson.loads(packed)
    return IndexedDocument(
        title=fields["title"],
        language=fields["language"],
        sections=tuple(Section(*each) for each in fields["sections"]),
        content_hash=bytes.fromhex(fields["content_hash"]),
        extractor_version=fields["extractor_version"],
        names=tuple(SectionNames(*each) for each in fields["names"]),
        simhash=fields["simhash"],
    )
