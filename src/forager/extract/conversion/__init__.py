"""Formats that are converted to HTML and then read as any page: reStructuredText, PDF, OpenAPI."""

from __future__ import annotations

from dataclasses import replace

from forager.extract.decode import Decoded, decode
from forager.extract.kinds import ContentKind


class NotReadable(ValueError):
    """There is no text to read; the message says why."""


def convert(kind: ContentKind, body: bytes, content_type: str | None) -> Decoded:
    """The HTML of a page. Raise NotReadable if it has no text."""
    if kind is ContentKind.PDF:
        from forager.extract.conversion.pdf import pdf_to_html

        return Decoded(pdf_to_html(body), "utf-8", False)
    decoded = decode(body, content_type)
    if kind is ContentKind.RST:
        from forager.extract.conversion.rst import rst_to_html

        return replace(decoded, text=rst_to_html(decoded.text))
    from forager.extract.conversion.openapi import openapi_to_html

    return replace(decoded, text=openapi_to_html(decoded.text))
