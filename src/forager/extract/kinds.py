"""The kind of a body: by its Content-Type, and by its first bytes if that is not specific."""

from __future__ import annotations

import re
from enum import StrEnum

_SNIFF_BYTES = 512


class ContentKind(StrEnum):
    """What a body contains, and so how it is read."""

    HTML = "html"
    XHTML = "xhtml"
    MARKDOWN = "markdown"
    PLAIN = "plain"
    RST = "rst"  # reStructuredText
    PDF = "pdf"
    OPENAPI = "openapi"
    OTHER = "other"  # images, archives, feeds: not extracted


MARKDOWN_TYPE = "text/markdown"
_BY_TYPE = {
    "text/html": ContentKind.HTML,
    "application/xhtml+xml": ContentKind.XHTML,
    MARKDOWN_TYPE: ContentKind.MARKDOWN,
    "text/x-markdown": ContentKind.MARKDOWN,
    "text/plain": ContentKind.PLAIN,
    "text/x-rst": ContentKind.RST,
    "text/prs.fallenstein.rst": ContentKind.RST,
}
# types that servers send for unknown files
_UNKNOWN = frozenset({"", "application/octet-stream", "application/unknown", "unknown/unknown"})
_STRUCTURED = frozenset(
    {"application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml",
     "application/openapi+json", "application/openapi+yaml", "application/vnd.oai.openapi",
     "application/vnd.oai.openapi+json"}
)  # fmt: skip
_XML = frozenset({"text/xml", "application/xml"})
_MAGIC = (
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"RIFF",
    b"\x7fELF",
    b"wOFF",
    b"wOF2",
)
# possessive: a few dozen comments could otherwise be matched in too many ways
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?><!--.*?-->\s*+)*"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script)\b",
    re.IGNORECASE | re.DOTALL,
)
# control characters that are not in text; UTF-16 with a byte order mark is not checked
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_OPENAPI_START = re.compile(
    rb"""\s*+(?:\{.{0,2000}?"(?:openapi|swagger)"\s*+:\s*+"\d
        |(?:[\#%-][^\n]*+\n\s*+)*["']?(?:openapi|swagger)["']?\s*+:\s*+["']?\d)""",
    re.DOTALL | re.VERBOSE,
)
_MARKDOWN_PATH = re.compile(r"(?:\.(?:md|mdx|markdown)|/llms(?:-full)?\.txt)$", re.IGNORECASE)


def media_type(content_type: str | None) -> str:
    """The type alone, lower-case, without parameters."""
    return (content_type or "").partition(";")[0].strip().lower()


def kind_of(body: bytes, content_type: str | None, url: str) -> ContentKind:
    """The kind of a body; binary data under a text type is OTHER."""
    head = body[:_SNIFF_BYTES]
    if head.startswith(b"%PDF-"):
        return ContentKind.PDF
    if head.startswith(_MAGIC):
        return ContentKind.OTHER
    declared = media_type(content_type)
    if declared in _STRUCTURED or url.partition("?")[0].endswith((".json", ".yaml", ".yml")):
        return ContentKind.OPENAPI if _OPENAPI_START.match(body[:4096]) else _other(declared, head)
    kind = _declared_kind(declared, head)
    if kind is ContentKind.PLAIN:
        return _kind_of_text(head, url)
    return kind


def _other(declared: str, head: bytes) -> ContentKind:
    """The kind of JSON or YAML that is no OpenAPI document."""
    kind = _declared_kind(declared, head)
    return kind if kind is not ContentKind.PLAIN or not _BINARY.search(head) else ContentKind.OTHER


def _declared_kind(declared: str, head: bytes) -> ContentKind:
    if known := _BY_TYPE.get(declared):
        return known
    if declared in _XML:
        return ContentKind.XHTML if b"<html" in head.lower() else ContentKind.OTHER
    if declared not in _UNKNOWN:
        return ContentKind.OTHER
    return ContentKind.HTML if _HTML_START.match(head) else ContentKind.PLAIN


def _kind_of_text(head: bytes, url: str) -> ContentKind:
    marked = head.startswith((b"\xfe\xff", b"\xff\xfe"))
    if not marked and _BINARY.search(head):
        return ContentKind.OTHER
    path = url.partition("?")[0]
    if path.lower().endswith(".rst"):
        return ContentKind.RST
    return ContentKind.MARKDOWN if _MARKDOWN_PATH.search(path) else ContentKind.PLAIN
