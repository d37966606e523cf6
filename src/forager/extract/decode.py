"""Bytes to text: the encoding of a page, and text that can be stored."""

from __future__ import annotations

import re
from dataclasses import dataclass

import cchardet

_PRESCAN_BYTES = 1024
_BOM = b"\xef\xbb\xbf"
# detection costs time per byte, and more text does not make it surer
_DETECT_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text without NUL and lone surrogates."""

    text: str
    encoding: str
    damaged: bool  # some bytes were not valid in the encoding, and became U+FFFD


def decode(body: bytes, content_type: str | None = None) -> Decoded:
    """The text of a page. Never fails: invalid bytes become U+FFFD."""
    declared = _declared(body, content_type)
    encoding = declared or "utf-8"
    text, damaged = _decode_as(body, encoding)
    if damaged and declared is None and not _is_utf8(body):
        encoding = _detected(body)
        text, damaged = _decode_as(body, encoding)
    # no codec used here makes lone surrogates, so NUL is all that PostgreSQL could refuse
    if b"\0" in body:
        text = text.replace("\0", "")
    return Decoded(text.removeprefix("\ufeff"), encoding, damaged)


def utf8_of(body: bytes, content_type: str | None = None) -> bytes:
    """The text in UTF-8: the body itself, where it is declared as UTF-8.

    Invalid bytes are left in that body; decoding a part of it must replace them.
    """
    has_marks = b"\0" in body or body.startswith(_BOM)
    if not has_marks and _declared(body, content_type) == "utf-8":
        return body
    decoded = decode(body, content_type)
    is_same = not has_marks and decoded.encoding == "utf-8" and not decoded.damaged
    return body if is_same else decoded.text.encode()


def _declared(body: bytes, content_type: str | None) -> str | None:
    return (
        _byte_order_mark(body)
        or charset_parameter(content_type or "")
        or _prescan(body[:_PRESCAN_BYTES])
    )


def _detected(body: bytes) -> str:
    """The encoding by the frequencies of bytes; else that of browsers' last resort."""
    guess = cchardet.detect(body[:_DETECT_BYTES])["encoding"]
    return (encoding_for(guess) if guess else None) or "windows-1252"


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


# Encoding -> every label that means it. Browsers read "latin1" and "ascii" as windows-1252, and
# know no other labels than these: Python's own aliases (utf-7, rot13, idna) must not be reachable.
_LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "ibm866": "866 cp866 csibm866 ibm866",
    "iso-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 "
    "iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 "
    "iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 "
    "iso_8859-4:1988 l4 latin4",
    "iso-8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 "
    "iso_8859-5 iso_8859-5:1988",
    "iso-8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 "
    "iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso-8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 "
    "iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek",
    "iso-8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 "
    "iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 visual",
    "iso-8859-8-i": "csiso88598i iso-8859-8-i logical",
    "iso-8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso-8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso-8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "macintosh": "csmacintosh mac macintosh x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "windows-1250": "cp1250 windows-1250 x-cp1250",
    "windows-1251": "cp1251 windows-1251 x-cp1251",
    "windows-1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 "
    "iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
    "windows-1253": "cp1253 windows-1253 x-cp1253",
    "windows-1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 "
    "iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254",
    "windows-1255": "cp1255 windows-1255 x-cp1255",
    "windows-1256": "cp1256 windows-1256 x-cp1256",
    "windows-1257": "cp1257 windows-1257 x-cp1257",
    "windows-1258": "cp1258 windows-1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "gb18030": "gb18030",
    "big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "iso-2022-jp": "csiso2022jp iso-2022-jp",
    "shift_jis": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "euc-kr": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 "
    "ksc5601 ksc_5601 windows-949",
    "utf-16be": "unicodefffe utf-16be",
    "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
}

_ENCODINGS = {label: name for name, labels in _LABELS.items() for label in labels.split()}

# where Python has no codec of that name, or one that is narrower than that of browsers
_CODECS = {
    "iso-8859-8-i": "iso8859-8",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "windows-874": "cp874",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}


def encoding_for(label: str) -> str | None:
    """The encoding a label means, or None if browsers do not know the label."""
    return _ENCODINGS.get(label.strip("\t\n\f\r ").lower())


def python_codec(encoding: str) -> str:
    """Python's codec for an encoding of this module."""
    return _CODECS.get(encoding, encoding)
