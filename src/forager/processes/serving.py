"""The inside of a sandboxed process: requests on standard input, responses on standard output."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, TypeAlias

import orjson

from forager.errors import error_with_type

Response: TypeAlias = tuple[dict[str, Any], list[bytes]]
# None: the message has no response
Handler: TypeAlias = Callable[[dict[str, Any], bytes], Response | None]

_PR_SET_PDEATHSIG = 1


def limit_memory(megabytes: int) -> None:
    """Limit the memory of this process; allocations beyond the limit fail."""
    limit = megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def freeze_imports(threshold: int) -> None:
    """Exclude everything imported so far from garbage collection, and run it less often."""
    gc.freeze()
    gc.set_threshold(threshold, 20, 20)
    gc.enable()


def die_with_parent() -> None:
    """End with the parent process, even in the middle of a request that never ends."""
    if sys.platform == "linux":  # elsewhere it ends at the end of its input
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(handle: Handler) -> None:
    """Handle requests until the input ends."""
    die_with_parent()
    # a page leaves hardly any cycles behind, and fewer objects are alive while it is read
    freeze_imports(100_000)
    try:
        _serve(handle, *_private_streams())
    except BrokenPipeError:
        os._exit(0)  # the parent is gone; an orderly exit would complain about the pipe again


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """The streams of requests and responses, out of the reach of prints and child processes."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reader, writer


def _serve(handle: Handler, reader: BinaryIO, writer: BinaryIO) -> None:
    _send(writer, READY)
    while (message := read_frame(reader.read)) is not None:
        request, blobs = message
        try:
            response = handle(request, blobs[0] if blobs else b"")
        except MemoryError:
            # objects of the page are still referenced: continue in a new process
            os._exit(OUT_OF_MEMORY)
        except Exception as error:  # a page that breaks the code is a failed page, not a failed job
            response = {"error": error_with_type(error)}, []
        if response is not None:
            header, blobs = response
            _send(writer, {"id": request["id"], **header}, blobs)


def _send(writer: BinaryIO, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
    writer.write(encode_frame(header, blobs))
    writer.flush()


_LENGTHS = struct.Struct("<II")
PREFIX = _LENGTHS.size
# the first message of a process: its start does not count as time spent on a page
READY = {"id": -1}
# the exit code of a process that cannot get more memory
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
        raise ValueError("a sandboxed process sent an invalid frame")
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
