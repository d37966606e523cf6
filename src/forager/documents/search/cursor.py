"""Where a search continues: in the generations it started with, after the last hit."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import orjson

from forager.errors import InvalidInput

MAX_LENGTH = 100_000
MAX_NUMBERS = 1_000_000
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SearchCursor:
    """The generations of a search and how many of its hits were shown."""

    generations: tuple[int, ...]
    offset: int = 0


def encode(cursor: SearchCursor, *question: str | None) -> str:
    """An opaque text, valid for the same query and filters only."""
    content = (_digest(question), cursor.generations, cursor.offset)
    return base64.urlsafe_b64encode(zlib.compress(orjson.dumps(content))).decode()


def decode(text: str, *question: str | None) -> SearchCursor:
    try:
        digest, generations, offset = orjson.loads(_unpack(text))
        cursor = SearchCursor(tuple(map(_number, generations)), _number(offset))
    except (ValueError, TypeError, OverflowError, binascii.Error, zlib.error):
        raise InvalidInput(
            "the cursor is not one that a search gave", hint="Start again without a cursor."
        ) from None
    if digest != _digest(question):
        raise InvalidInput(
            "the cursor belongs to another search",
            hint="Give the same words and filters, or start again without a cursor.",
        )
    return cursor


def _unpack(text: str) -> bytes:
    if len(text) > MAX_LENGTH:
        raise ValueError("too long")
    unpacker = zlib.decompressobj()
    # a small text may unpack to a very large one
    return unpacker.decompress(base64.urlsafe_b64decode(text.encode()), MAX_NUMBERS)


def _number(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ValueError("not a number of a cursor")
    return value


def _digest(question: Sequence[str | None]) -> str:
    return sha256(orjson.dumps(question)).hexdigest()[:16]
