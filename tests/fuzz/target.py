"""A target: a kind of input that strangers send, and what must hold whatever they send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """`check` fails for bytes that break a promise; `words` are what a fuzzer should play with."""

    check: Callable[[bytes], None]
    examples: Sequence[bytes]
    words: Sequence[bytes] = ()


def text_of(data: bytes) -> str:
    """Any text, also one with lone surrogates, as headers and JSON may bring it."""
    return data.decode("utf-8", "surrogateescape")


def split_line(data: bytes) -> tuple[bytes, bytes]:
    """The first line, and everything after it: two inputs in one."""
    first, _, rest = data.partition(b"\n")
    return first, rest


def assert_storable(text: str) -> None:
    """The text can be sent as UTF-8 and kept by PostgreSQL."""
    text.encode()
    assert "\0" not in text, "a NUL cannot be stored"
