"""Archived responses as pages show them."""

from __future__ import annotations

from dataclasses import dataclass

from forager.archive.reader import ArchivedResponse
from forager.extract.decode import decode
from forager.extract.text import storable

MAX_TEXT = 200_000
# bodies of other types are only offered for download
TEXT_TYPES = (
    "text/",
    "application/json",
    "application/xml",
    "application/xhtml",
    "application/javascript",
)


@dataclass(frozen=True, slots=True)
class ShownResponse:
    """`text` is empty if the body is not text."""

    response: ArchivedResponse
    reason: str
    headers: list[tuple[str, str]]
    text: str
    is_cut: bool


def shown_response(stored: ArchivedResponse) -> ShownResponse:
    headers = [(storable(name), storable(value)) for name, value in stored.headers]
    text = _text(stored)
    is_cut = len(text) > MAX_TEXT
    return ShownResponse(stored, storable(stored.reason), headers, text[:MAX_TEXT], is_cut)


def _text(stored: ArchivedResponse) -> str:
    content_type = stored.content_type or ""
    if content_type and not content_type.lower().startswith(TEXT_TYPES):
        return ""
    # no more bytes than can become the text that is shown
    return storable(decode(stored.body[: 4 * MAX_TEXT + 1], content_type or None).text)
