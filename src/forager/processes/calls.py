"""One call of a function in a limited process, which starts for it and ends with it.

For input that few requests have and that may be expensive: it costs that process, never the event
loop of a service, and nothing between requests.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from forager.errors import ErrorKind, GiveUp
from forager.processes.sandbox import Sandbox, SandboxLimits
from forager.processes.serving import Response, limit_memory, serve

CALL_LIMITS = SandboxLimits(seconds=10.0, memory_mb=768)
# calls at the same time; others wait
CALLS = 2

_ROOM: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def call_limited(
    function: Callable[..., Any], *arguments: Any, limits: SandboxLimits = CALL_LIMITS
) -> Any:
    """The result of a module's function; GiveUp if the call exceeds the limits or fails.

    Arguments and result must be JSON.
    """
    setup = orjson.dumps([function.__module__, function.__qualname__, limits.memory_mb])
    room = _ROOM.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(CALLS))
    async with room:
        sandbox = await Sandbox.start(__name__, setup, limits)
        try:
            answer, blobs = await sandbox.request(0, {"id": 0}, orjson.dumps(arguments))
        finally:
            await sandbox.stop()
    if "error" in answer:
        raise GiveUp(f"the page cannot be read: {answer['error']}", kind=ErrorKind.PARSE)
    return orjson.loads(blobs[0])


def main() -> None:
    """Answer requests with one function, until the input ends."""
    module, name, memory_mb = orjson.loads(sys.argv[1])
    limit_memory(memory_mb)
    function = getattr(import_module(module), name)

    def handle(_request: dict[str, Any], body: bytes) -> Response:
        return {}, [orjson.dumps(function(*orjson.loads(body)))]

    serve(handle)


if __name__ == "__main__":
    main()
