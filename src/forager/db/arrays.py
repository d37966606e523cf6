"""Lists as PostgreSQL arrays: the same values as psycopg sends, without a call per element."""

from __future__ import annotations

from array import array
from struct import pack
from types import NoneType
from typing import Any

from psycopg import adapters, pq
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, PyFormat
from psycopg.types.array import ListDumper

_REAL, _REAL_ARRAY = 700, 1021  # OIDs


class FlatListDumper(ListDumper):
    """A list of texts, bytes or integers; every other one is left to psycopg."""

    def _find_list_element(self, L: list[Any], format: PyFormat) -> Any:  # noqa: N803 - its name
        kinds = set(map(type, L))
        has_null = NoneType in kinds
        kinds.discard(NoneType)
        if len(kinds) != 1 or kinds.isdisjoint((str, bytes, int)):
            return super()._find_list_element(L, format)
        items = [item for item in L if item is not None] if has_null else L
        if int in kinds:  # the largest decides how wide the elements are
            return max(max(items), -min(items) - 1)
        return items[0]

    def dump(self, obj: list[Any]) -> Buffer | None:
        kinds = set(map(type, obj))
        if kinds == {str} and "\0" not in (text := "\n".join(obj)):
            return _quoted(obj, text).encode(self._tx.encoding)
        if kinds == {bytes}:
            return ('{"\\\\x' + '","\\\\x'.join(map(bytes.hex, obj)) + '"}').encode()
        if kinds == {int}:
            return f"{{{','.join(map(str, obj))}}}".encode()
        return super().dump(obj)


def _quoted(texts: list[str], joined: str) -> str:
    if '"' in joined or "\\" in joined:
        texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    return '{"' + '","'.join(texts) + '"}'


class RealArrayDumper(Dumper):
    """`array("f")` as a real[] in PostgreSQL's binary format: each number after its length."""

    format = pq.Format.BINARY
    oid = _REAL_ARRAY

    def dump(self, obj: array[float]) -> Buffer | None:
        words = array("I", [4, 0]) * len(obj)
        words[1::2] = array("I", obj.tobytes())
        words.byteswap()
        return pack("!iiIii", 1, 0, _REAL, len(obj), 1) + words.tobytes()


def use_fast_arrays() -> None:
    """Use these for the parameters of all connections that are opened from now on."""
    adapters.register_dumper(list, FlatListDumper)
    adapters.register_dumper(array, RealArrayDumper)
