from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.decode import decode, encoding_for, python_codec, utf8_of
from forager.extract.text import storable

LABELS = ["utf-8", "latin1", "shift_jis", "gb2312", "big5", "euc-kr", "iso-2022-jp", "utf-16"]


@pytest.mark.parametrize(
    ("body", "content_type", "text", "encoding"),
    [
        (b"\xef\xbb\xbfa", "text/html; charset=latin1", "a", "utf-8"),
        (b"\xff\xfea\0", None, "a", "utf-16le"),
        (b"\xfe\xff\0a", None, "a", "utf-16be"),
        (b"\x80", "text/html;charset=ISO-8859-1", "€", "windows-1252"),
        (b"\xc3\xa4", 'text/html; charset="UTF-8"', "ä", "utf-8"),
        ("ж".encode("cp1251"), "text/html; charset=cp1251", "ж", "windows-1251"),
        ("grüße".encode(), "text/html; charset=klingon", "grüße", "utf-8"),
        ("grüße".encode(), "text/html", "grüße", "utf-8"),
        (b"", None, "", "utf-8"),
        (b"a\0b", None, "ab", "utf-8"),
    ],
)
def test_which_encoding_is_used(
    body: bytes, content_type: str | None, text: str, encoding: str
) -> None:
    decoded = decode(body, content_type)
    assert (decoded.text, decoded.encoding) == (text, encoding)
    assert not decoded.damaged


@pytest.mark.parametrize(
    "declaration",
    [
        '<meta charset="shift_jis">',
        "<META CHARSET=Shift_JIS>",
        "<meta http-equiv='Content-Type' content='text/html; charset=shift_jis'>",
        "<!-- <meta charset=utf-8> --><meta charset='x-sjis'/>",
        '<?xml version="1.0" encoding="Shift_JIS"?>',
    ],
)
def test_declared_in_the_page(declaration: str) -> None:
    decoded = decode(f"{declaration}日本".encode("cp932"), "text/html")
    assert decoded.text == f"{declaration}日本"
    assert decoded.encoding == "shift_jis"


def test_a_description_that_mentions_a_charset_declares_nothing() -> None:
    decoded = decode('<meta name="x" content="charset=shift_jis">ü'.encode())
    assert decoded.encoding == "utf-8"


def test_a_page_that_can_be_read_is_not_utf16() -> None:
    assert decode("<meta charset=utf-16>ü".encode()).text.endswith("ü")


def test_declarations_after_the_first_kilobyte_come_too_late() -> None:
    decoded = decode((" " * 1024 + "<meta charset=shift_jis>ü").encode())
    assert decoded.encoding == "utf-8"


def test_undeclared_text_is_recognised() -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20
    decoded = decode(text.encode("cp1251"))
    assert decoded.text == text


def test_text_that_was_cut_inside_a_character_is_still_utf8() -> None:
    decoded = decode("grüß".encode()[:-1])
    assert (decoded.text, decoded.encoding, decoded.damaged) == ("grü\ufffd", "utf-8", True)


def test_labels_are_those_of_browsers_and_no_others() -> None:
    assert encoding_for(" ASCII\n") == "windows-1252"
    assert encoding_for("utf-7") is None
    assert encoding_for("rot13") is None
    for label in LABELS:
        encoding = encoding_for(label)
        assert encoding is not None
        assert b"".decode(python_codec(encoding)) == ""


def _is_storable(text: str) -> bool:
    return "\0" not in text and bool(text.encode("utf-8") or not text)


@given(
    st.binary(max_size=300),
    st.one_of(
        st.none(),
        st.text(),
        st.sampled_from(LABELS).map(lambda label: f"text/html; charset={label}"),
    ),
)
def test_decoding_never_fails_and_can_be_stored(body: bytes, content_type: str | None) -> None:
    assert _is_storable(decode(body, content_type).text)


@given(st.sampled_from(LABELS), st.binary(max_size=100))
def test_declared_encodings_never_fail(label: str, body: bytes) -> None:
    assert _is_storable(decode(f"<meta charset={label}>".encode() + body).text)


@given(st.text(st.characters()))
def test_any_text_can_be_made_storable(text: str) -> None:
    assert _is_storable(storable(text))


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("grüße".encode(), "text/html; charset=utf-8"),
        ("<meta charset=utf-8>grüße".encode(), None),
        ("grüße".encode(), None),
        (b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", None),
        ("grüße".encode("cp1252"), None),
        ("grüße".encode("cp1252"), "text/html; charset=latin1"),
        ("grüße".encode("utf-16"), None),
        (b"a\0b\xc3\xbc", "text/html; charset=utf-8"),
        ("grüße".encode("cp1252"), "text/html; charset=utf-8"),
        ("grüße".encode()[:-4], "text/html; charset=utf-8"),
    ],
)
def test_utf8_reads_as_the_text_does(body: bytes, content_type: str | None) -> None:
    read = utf8_of(body, content_type).decode("utf-8", "replace")
    assert read == decode(body, content_type).text


@given(st.binary(max_size=200), st.sampled_from([None, *(f"a/b; charset={x}" for x in LABELS)]))
def test_any_bytes_read_the_same_in_utf8(body: bytes, content_type: str | None) -> None:
    read = utf8_of(body, content_type).decode("utf-8", "replace")
    assert read == decode(body, content_type).text
