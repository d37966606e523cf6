"""Reading files of URLs to track: the good and the bad lines."""

from __future__ import annotations

import io
from datetime import timedelta

from forager.tasks.imports import read_requests
from forager.tasks.tracking_request import BadLine, RequestedTerms, TrackRequest

HOUR = timedelta(hours=1)


def read(content: bytes, name: str = "") -> list[TrackRequest | BadLine]:
    return list(read_requests(io.BytesIO(content), name))


def good(content: bytes, name: str = "") -> list[tuple[str, RequestedTerms]]:
    return [(one.url, one.terms) for one in read(content, name) if isinstance(one, TrackRequest)]


def bad(content: bytes, name: str = "") -> list[tuple[int, str]]:
    return [(one.line, str(one.reason)) for one in read(content, name) if isinstance(one, BadLine)]
