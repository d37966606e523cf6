"""Documents as an extraction process returns them, packed and unpacked."""

from __future__ import annotations

from hashlib import sha256
from operator import attrgetter

import orjson

from forager.crawl.extraction.simhash import simhash
from forager.documents.names import section_names
from forager.documents.page import IndexedDocument, SectionNames
from forager.extract.document import Document, ExtractedPage, extractor_version
from forager.extract.sections import Section

_SECTION = attrgetter("heading", "level", "anchor", "content", "position", "parent", "anchors")


def new_document(reading: ExtractedPage, digest: str = "") -> Document:
    """The content of a page; a page without content has a document with its title."""
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
    """Encode a document for another process. Identifiers are extracted here, in parallel."""
    names = section_names(document.title, document.sections)
    return orjson.dumps(
        {
            "title": document.title,
            "language": document.language,
            "content_hash": document.content_hash.hex(),
            "extractor_version": document.extractor_version,
            "sections": [_SECTION(section) for section in document.sections],
            "names": [(each.heading, each.section, each.kind) for each in names],
            "simhash": simhash(document.markdown),
        }
    )


def unpack_document(packed: bytes) -> IndexedDocument:
    fields = orjson.loads(packed)
    return IndexedDocument(
        title=fields["title"],
        language=fields["language"],
        sections=tuple(Section(*(*each, tuple(names))) for *each, names in fields["sections"]),
        content_hash=bytes.fromhex(fields["content_hash"]),
        extractor_version=fields["extractor_version"],
        names=tuple(SectionNames(*each) for each in fields["names"]),
        simhash=fields["simhash"],
    )
