"""Archived responses as pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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
    status: int
    reason: str
    date: datetime
    headers: tuple[tuple[str, str], ...]
    size: int
    text: str
    is_cut: bool
    ip: str | None
    protocol: str | None
    truncated: str | None
    has_picture: bool


def shown_response(stored: ArchivedResponse) -> ShownResponse:
    text = _text(stored)
    return ShownResponse(
        stored.status,
        storable(stored.reason),
        stored.date,
        tuple((storable(name), storable(value)) for name, value in stored.headers),
        len(stored.body),
        text[:MAX_TEXT],
        len(text) > MAX_TEXT,
        stored.ip,
        stored.protocol,
        stored.truncated,
        bool(stored.picture),
    )


def _text(stored: ArchivedResponse) -> str:
    content_type = header(stored, "content-type")
    if content_type and not content_type.lower().startswith(TEXT_TYPES):
        return ""
    # no more bytes than can become the text that is shown
    return storable(decode(stored.body[: 4 * MAX_TEXT + 1], content_type or None).text)


def header(stored: ArchivedResponse, wanted: str) -> str:
    return next((value for name, value in stored.headers if name.lower() == wanted), "")
