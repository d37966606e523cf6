"""Streaming reader of a JSON array: entries one by one, in bounded memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

PIECE = 64 * 1024

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Entry:
    """A value, its first line, and its source; or why nothing after this line can be read."""

    line: int
    text: str
    value: Any = None
    problem: str | None = None


def read_array(begun: bytes, stream: BinaryIO, *, line: int = 1, longest: int) -> Iterator[Entry]:
    """The entries of an array that starts with `begun` and continues in the stream."""
    return _Array(begun, stream, line, longest).entries()


class _Array:
    def __init__(self, begun: bytes, stream: BinaryIO, line: int, longest: int) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._begun = begun
        self._text = ""
        self._place = 0
        self._line = line
        self._longest = longest
        self._is_over = False

    def entries(self) -> Iterator[Entry]:
        try:
            self._text = self._decoder.decode(self._begun)
            self._take("[")
            while self._next_mark() not in ("]", ""):
                yield self._entry()
                if self._next_mark() == ",":
                    self._take(",")
                elif self._next_mark() not in ("]", ""):
                    raise ValueError("there is no comma after the entry")
            self._take("]")
            if self._next_mark():
                raise ValueError("there is something after the end of the array")
        except UnicodeDecodeError:
            yield self._broken("this is not UTF-8 text")
        except RecursionError:
            yield self._broken("it is nested too deeply")
        except ValueError as error:
            yield self._broken(str(error))

    def _entry(self) -> Entry:
        """The next value; a number at the end of the buffer may continue."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._place)
                if end < len(self._text) or not self._read_on():
                    break
            except json.JSONDecodeError as error:
                if len(self._text) - self._place > self._longest:
                    words = f"the entry is longer than {self._longest:,} characters"
                    raise ValueError(words) from None
                if not self._read_on():
                    raise ValueError(f"it is not JSON: {error.msg}") from None
        entry = Entry(self._line, self._text[self._place : end], value)
        self._advance(end)
        return entry

    def _next_mark(self) -> str:
        """The next character that is not space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._place)
            assert found is not None
            self._advance(found.end())
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._read_on():
                return ""

    def _take(self, mark: str) -> None:
        if self._next_mark() != mark:
            raise ValueError("the array ends before its bracket does")
        self._advance(self._place + 1)

    def _advance(self, place: int) -> None:
        self._line += self._text.count("\n", self._place, place)
        self._place = place

    def _read_on(self) -> bool:
        """Read another piece, and drop the consumed text; False at the end."""
        if self._is_over:
            return False
        piece = self._stream.read(PIECE)
        self._is_over = not piece
        self._text = self._text[self._place :] + self._decoder.decode(piece, final=self._is_over)
        self._place = 0
        return not self._is_over

    def _broken(self, problem: str) -> Entry:
        text = self._text[self._place : self._place + 1000]
        return Entry(self._line, text, problem=problem)
