"""Bytes to text: which encoding, how it was found out, and text that can be stored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import cchardet

from forager.extract.charsets import encoding_for, python_codec

_PRESCAN_BYTES = 1024
_BOM = b"\xef\xbb\xbf"
# detection costs time per byte, and more text does not make it surer
_DETECT_BYTES = 65_536


class EncodingSource(StrEnum):
    """How the encoding was found out, in the order they are asked."""

    BOM = "bom"
    HEADER = "header"
    META = "meta"
    UTF8 = "utf8"  # nothing was declared, and the bytes are valid UTF-8
    DETECTED = "detected"  # by the frequencies of bytes
    FALLBACK = "fallback"  # as browsers do where everything else fails


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text without NUL and lone surrogates, and where it comes from."""

    text: str
    encoding: str
    source: EncodingSource
    damaged: bool  # some bytes were not valid in the encoding, and became U+FFFD


def decode(body: bytes, content_type: str | None = None) -> Decoded:
    """The text of a page. Never fails: bytes that mean nothing become U+FFFD."""
    encoding, source = _declared(body, content_type) or ("utf-8", EncodingSource.UTF8)
    text, damaged = _decode_as(body, encoding)
    if damaged and source is EncodingSource.UTF8 and not _is_utf8(body):
        encoding, source = _detected(body)
        text, damaged = _decode_as(body, encoding)
    # no codec used here makes lone surrogates, so NUL is all that PostgreSQL could refuse
    if b"\0" in body:
        text = text.replace("\0", "")
    return Decoded(text.removeprefix("\ufeff"), encoding, source, damaged)


def utf8_of(body: bytes, content_type: str | None = None) -> bytes:
    """The text in UTF-8: the body itself, where it says that it is just that.

    Bytes that mean nothing are left in it there, for whoever decodes a part to replace.
    """
    if b"\0" in body or body.startswith(_BOM):
        return decode(body, content_type).text.encode()
    declared = _declared(body, content_type)
    if declared is not None and declared[0] == "utf-8":
        return body
    decoded = decode(body, content_type)
    is_utf8 = decoded.encoding == "utf-8" and not decoded.damaged
    return body if is_utf8 else decoded.text.encode()


def _declared(body: bytes, content_type: str | None) -> tuple[str, EncodingSource] | None:
    if marked := _byte_order_mark(body):
        return marked, EncodingSource.BOM
    if named := charset_parameter(content_type or ""):
        return named, EncodingSource.HEADER
    if named := _prescan(body[:_PRESCAN_BYTES]):
        return named, EncodingSource.META
    return None


def _detected(body: bytes) -> tuple[str, EncodingSource]:
    guess = cchardet.detect(body[:_DETECT_BYTES])["encoding"]
    if guess and (detected := encoding_for(guess)):
        return detected, EncodingSource.DETECTED
    return "windows-1252", EncodingSource.FALLBACK


def _decode_as(body: bytes, encoding: str) -> tuple[str, bool]:
    codec = python_codec(encoding)
    try:
        return body.decode(codec), False
    except UnicodeError:
        return body.decode(codec, "replace"), True


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # a body that was cut off may end inside a character
        return error.reason == "unexpected end of data"
    return True


def _byte_order_mark(body: bytes) -> str | None:
    if body.startswith(_BOM):
        return "utf-8"
    if body.startswith(b"\xfe\xff"):
        return "utf-16be"
    return "utf-16le" if body.startswith(b"\xff\xfe") else None


# --- declarations ---------------------------------------------------------------------------

_CHARSET = re.compile(r"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"']+))", re.IGNORECASE)


def charset_parameter(content_type: str) -> str | None:
    """The encoding that a Content-Type names, if browsers know it."""
    found = _CHARSET.search(content_type)
    return encoding_for(found[1] or found[2] or found[3] or "") if found else None


_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(rb"<meta[\s/]([^>]*)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-z-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([A-Za-z0-9._:-]+)[\"']")


def _prescan(head: bytes) -> str | None:
    """The encoding declared inside the first bytes, by a meta element or an XML declaration."""
    for meta in _META.finditer(_COMMENT.sub(b"", head)):
        if encoding := _meta_encoding(meta[1].decode("latin-1")):
            return _readable_as_ascii(encoding)
    xml = _XML_DECLARATION.match(head)
    encoding = encoding_for(xml[1].decode("ascii")) if xml else None
    return _readable_as_ascii(encoding) if encoding else None


def _meta_encoding(attributes: str) -> str | None:
    values = {m[1].lower(): m[2] or m[3] or m[4] or "" for m in _ATTRIBUTE.finditer(attributes)}
    if "charset" in values:
        return encoding_for(values["charset"])
    if values.get("http-equiv", "").lower() == "content-type":
        return charset_parameter(values.get("content", ""))
    return None


def _readable_as_ascii(encoding: str) -> str:
    # a declaration that could be read as ASCII cannot be right about UTF-16
    return "utf-8" if encoding.startswith("utf-16") else encoding
