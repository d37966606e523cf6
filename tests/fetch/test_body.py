from __future__ import annotations

import gzip
import tracemalloc

import pytest

from forager.errors import ErrorKind, GiveUp, Retry
from forager.fetch.body import Body, decoders
from servers.hostile import CODERS, bomb

TEXT = b"all work and no play " * 5000
CODINGS = ["gzip", "deflate", "br", "zstd"]


def unpack(coding: str, data: bytes, step: int, limit: int = 1 << 20) -> bytes:
    body = Body(coding, limit)
    for start in range(0, len(data), step):
        body.feed(data[start : start + step])
    return body.finish()


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_unpacks_however_it_is_cut(coding: str, step: int) -> None:
    assert unpack(coding, CODERS[coding](TEXT), step) == TEXT


@pytest.mark.parametrize("step", [1, 1 << 20])
def test_raw_deflate_counts_as_deflate(step: int) -> None:
    assert unpack("deflate", CODERS["raw-deflate"](TEXT), step) == TEXT


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_concatenated_members_are_one_body(coding: str, step: int) -> None:
    assert unpack(coding, CODERS[coding](b"one ") + CODERS[coding](b"two"), step) == b"one two"


def test_padding_after_gzip_is_ignored() -> None:
    assert unpack("gzip", gzip.compress(b"page") + bytes(100), 1 << 20) == b"page"


def test_stacked_codings_are_undone_in_reverse() -> None:
    assert unpack("gzip, br", CODERS["br"](gzip.compress(TEXT)), 100) == TEXT


@pytest.mark.parametrize("coding", ["", "identity", "utf-8", "none"])
def test_no_coding_leaves_the_body_alone(coding: str) -> None:
    assert unpack(coding, b"plain", 2) == b"plain"


@pytest.mark.parametrize("coding", CODINGS)
def test_an_empty_body_is_empty_in_any_coding(coding: str) -> None:
    assert Body(coding, 100).finish() == b""


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_bomb_is_refused_in_bounded_memory(coding: str) -> None:
    packed = bomb(coding)
    body = Body(coding, 4 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(GiveUp) as caught:
            body.feed(packed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.kind is ErrorKind.TOO_LARGE
    assert body.size < 8 << 20
    assert peak < 16 << 20


def test_a_body_past_its_limit_is_refused_while_it_arrives() -> None:
    body = Body("", 10)
    body.feed(b"12345")
    with pytest.raises(GiveUp, match="limit of 10 bytes"):
        body.feed(b"678901")


def test_an_announced_length_past_the_limit_is_refused_unread() -> None:
    with pytest.raises(GiveUp, match="10,000,000,000"):
        Body("", 1000).expect(10_000_000_000)


@pytest.mark.parametrize("coding", CODINGS)
def test_a_stream_cut_short_is_a_network_failure(coding: str) -> None:
    packed = CODERS[coding](TEXT)
    with pytest.raises(Retry) as caught:
        unpack(coding, packed[: len(packed) // 2], 1 << 20)
    assert caught.value.kind is ErrorKind.NETWORK


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_that_is_not_what_it_says_is_a_parse_failure(coding: str) -> None:
    with pytest.raises(GiveUp) as caught:
        unpack(coding, b"<html>not packed at all</html>", 1 << 20)
    assert caught.value.kind is ErrorKind.PARSE


def test_endless_tiny_members_are_refused() -> None:
    with pytest.raises(GiveUp, match="1000 parts"):
        unpack("gzip", gzip.compress(b"") * 2000, 1 << 20)


def test_too_many_codings_are_refused() -> None:
    with pytest.raises(GiveUp, match="4 content codings"):
        decoders("gzip, gzip, gzip, gzip")
