"""Messages to and from a sandboxed process: a JSON header and raw blobs.

No pickle: such a process reads hostile pages, and what it answers is only data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import orjson

_LENGTHS = struct.Struct("<II")
PREFIX = _LENGTHS.size
# the first thing a process says: its start does not count as time spent on a page
READY = {"id": -1}
# how a process ends that cannot get more memory
OUT_OF_MEMORY = 3
MAX_FRAME = 512 * 1024 * 1024


def encode_frame(header: dict[str, Any], blobs: Sequence[bytes]) -> bytes:
    """One message: lengths, the header (which also says how long each blob is), the blobs."""
    head = orjson.dumps({**header, "blobs": [len(blob) for blob in blobs]})
    body = b"".join(blobs)
    return b"".join((_LENGTHS.pack(len(head), len(body)), head, body))


def frame_lengths(prefix: bytes) -> tuple[int, int]:
    head, body = _LENGTHS.unpack(prefix)
    if head + body > MAX_FRAME:
        raise ValueError("a sandboxed process sent nonsense")
    return head, body


def decode_frame(head: bytes, body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    header = orjson.loads(head)
    blobs, start = [], 0
    for length in header.pop("blobs"):
        blobs.append(body[start : start + length])
        start += length
    return header, blobs


def read_frame(read: Callable[[int], bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next message of a blocking stream; None at its end."""
    prefix = read(PREFIX)
    if len(prefix) < PREFIX:
        return None
    head, body = frame_lengths(prefix)
    return decode_frame(read(head), read(body))
