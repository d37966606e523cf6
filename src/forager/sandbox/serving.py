"""The inside of a sandboxed process: questions from standard input, answers to standard output."""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, TypeAlias

from forager.sandbox.frames import OUT_OF_MEMORY, READY, encode_frame, read_frame

Answer: TypeAlias = tuple[dict[str, Any], list[bytes]]
# None: the message wants no answer
Answering: TypeAlias = Callable[[dict[str, Any], bytes], Answer | None]


def limit_memory(megabytes: int) -> None:
    limit = megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def look_for_cycles_seldom() -> None:
    """What was imported stays, and a page leaves hardly any cycles behind."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def serve(answer: Answering) -> None:
    """Answer until there are no more questions."""
    look_for_cycles_seldom()
    try:
        _serve(answer, sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(0)  # whoever asked is gone; an orderly exit would complain about the pipe again


def _serve(answer: Answering, reader: BinaryIO, writer: BinaryIO) -> None:
    _send(writer, READY)
    while (message := read_frame(reader.read)) is not None:
        request, blobs = message
        try:
            answered = answer(request, blobs[0] if blobs else b"")
        except MemoryError:
            # whatever the page had built up is still referred to: start again with a clean slate
            raise SystemExit(OUT_OF_MEMORY) from None
        except Exception as error:  # a page that breaks the code is a failed page, not a failed job
            answered = {"error": f"{type(error).__name__}: {error}"}, []
        if answered is not None:
            header, blobs = answered
            _send(writer, {"id": request["id"], **header}, blobs)


def _send(writer: BinaryIO, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
    writer.write(encode_frame(header, blobs))
    writer.flush()
