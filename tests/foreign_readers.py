"""Segments through the eyes of two readers that share no code with Forager."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from warcio.archiveiterator import ArchiveIterator as WarcioIterator  # type: ignore[import-untyped]

with warnings.catch_warnings():
    # fastwarc warns of its own old names while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader says of one record."""

    kind: str
    url: str | None
    status: int | None
    headers: list[tuple[str, str]]
    body: bytes


def by_fastwarc(data: bytes) -> list[Seen]:
    """Any compression, recognized by its first bytes; a record with a wrong digest is left out."""
    found = []
    for record in ArchiveIterator(io.BytesIO(data), parse_http=True, verify_digests=True):
        http = record.http_headers
        seen = Seen(
            kind=str(record.headers.get("WARC-Type")),
            url=record.headers.get("WARC-Target-URI"),
            status=http.status_code if http else None,
            headers=list(http.to_tuples()) if http else [],
            body=record.reader.read(),
        )
        found.append(seen)
    return found


def by_warcio(data: bytes) -> list[Seen]:
    """Gzip or nothing; a wrong digest is an error."""
    found = []
    for record in WarcioIterator(io.BytesIO(data), check_digests="raise"):
        http = record.http_headers
        seen = Seen(
            kind=record.rec_type,
            url=record.rec_headers.get_header("WARC-Target-URI"),
            status=int(http.get_statuscode()) if http else None,
            headers=http.headers if http else [],
            body=record.content_stream().read(),
        )
        found.append(seen)
    return found
