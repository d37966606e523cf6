"""Where a search goes on: in the generations it began with, after the last hit."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import orjson

from forager.errors import InvalidInput

MAX_LENGTH = 100_000
MAX_NUMBERS = 1_000_000
_LARGEST = 2**63 - 1

# score, document and position of the last hit
Place = tuple[float, int, int]
START: Place = (math.inf, 0, 0)


@dataclass(frozen=True, slots=True)
class SearchCursor:
    """The generations of a search and the place it has reached."""

    generations: tuple[int, ...]
    after: Place
    # whether identifiers are looked for as typed, or by their words
    as_typed: bool = True


def encode(cursor: SearchCursor, *question: str | None) -> str:
    """An opaque text, good for the same question only."""
    score, document, position = cursor.after
    place = (score.hex(), document, position)
    content = (_digest(question), cursor.generations, place, cursor.as_typed)
    return base64.urlsafe_b64encode(zlib.compress(orjson.dumps(content))).decode()


def decode(text: str, *question: str | None) -> SearchCursor:
    try:
        digest, generations, (score, document, position), typed = orjson.loads(_unpack(text))
        cursor = SearchCursor(
            tuple(_number(number) for number in generations),
            (float.fromhex(score), _number(document), _number(position)),
            bool(typed),
        )
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
    # somebody may have packed a lot of nothing
    return unpacker.decompress(base64.urlsafe_b64decode(text.encode()), MAX_NUMBERS)


def _number(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ValueError("not a number of ours")
    return value


def _digest(question: Sequence[str | None]) -> str:
    return sha256(orjson.dumps(question)).hexdigest()[:16]
