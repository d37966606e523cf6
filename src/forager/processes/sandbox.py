"""A process for hostile input: input that exceeds its limits costs one response, nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from forager.clock import wait_for_event
from forager.errors import ErrorKind, GiveUp, Retry
from forager.logs import get_logger
from forager.processes.child import ChildProcess
from forager.processes.serving import (
    OUT_OF_MEMORY,
    PREFIX,
    READY,
    Response,
    decode_frame,
    encode_frame,
    frame_lengths,
)
from forager.processes.tree import mark_below
from forager.processes.usage import Effort
from forager.settings import Settings

log = get_logger("sandbox")

# requests that wait inside one process: enough to keep it busy while the loop does something else
QUEUE_LENGTH = 8
# importing takes half a second of processor time
START_LIMIT = 60.0
# a request fails after it has ended its process this many times
FAULTS = 2
# or after this many ends with another cause: the kernel, too, kills what needs too much memory
KILLS = 5
# responses that a dead process had sent are read for this long; something may hold its end open
DRAIN_LIMIT = 1.0
# a process that closed its stream may take this long to exit, also on a busy machine
EXIT_LIMIT = 10.0
KILL_LIMIT = 5.0
RESTART_DELAY, LONGEST_RESTART_DELAY = 0.5, 10.0
# after this many processes in a row that did not start, requests fail with a temporary error
FAILED_STARTS = 10
# signals that a process does not cause by a fault in its own code
_FROM_OUTSIDE = frozenset({-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP})
# what decoding raises for an invalid response
_PROTOCOL_ERRORS = (ValueError, LookupError, TypeError, AttributeError)
# all variables that a plug-in can read: no settings, no credentials
_VARIABLES = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PREFIXES = ("PYTHON", "LC_")


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """`seconds`: of processor time, and of waiting, for one request."""

    processes: int = 1
    seconds: float = 20.0
    memory_mb: int = 1024

    @classmethod
    def of_pages(cls, settings: Settings) -> Self:
        """The limits of processes that read pages."""
        return cls(
            processes=settings.extraction_processes or _default_processes(os.cpu_count() or 1),
            seconds=settings.extraction_time_limit,
            memory_mb=settings.extraction_memory_mb,
        )


def _default_processes(cores: int) -> int:
    # on two cores, a second one is faster where pages are large, and a third is not
    return min(cores, max(2, cores // 2))


@dataclass(slots=True)
class _Request:
    message: bytes
    response: asyncio.Future[Response]
    # how often a process ended that worked on it: by a fault in its code, and from outside
    faults: int = 0
    kills: int = 0


class Sandbox:
    """One process that runs a module, and its pending requests in order.

    `subject` names the input of requests in error messages.
    """

    def __init__(self, module: str, argument: bytes, limits: SandboxLimits, subject: str) -> None:
        self._module = module
        self._subject = subject
        self._argument = argument
        self._limits = limits
        self._waiting: OrderedDict[int, _Request] = OrderedDict()
        self._room = asyncio.Semaphore(QUEUE_LENGTH)
        self._tasks: list[asyncio.Task[None]] = []
        self._child: ChildProcess
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._effort = Effort()
        self._ready = False
        # processes in a row that ended before they were ready
        self._failed_starts = 0
        # why this side killed the process
        self._broken_limit: str | None = None
        self._was_stopped = False

    @classmethod
    async def start(
        cls, module: str, argument: bytes, limits: SandboxLimits, *, subject: str = "page"
    ) -> Self:
        sandbox = cls(module, argument, limits, subject)
        await sandbox._spawn()
        sandbox._tasks = [
            asyncio.create_task(sandbox._serve()),
            asyncio.create_task(sandbox._watch()),
        ]
        return sandbox

    @property
    def load(self) -> int:
        return len(self._waiting)

    async def request(self, number: int, header: dict[str, Any], body: bytes) -> Response:
        async with self._room:
            # only now: pages may be large, and many may wait
            message = encode_frame(header, [body])
            request = _Request(message, asyncio.get_running_loop().create_future())
            self._waiting[number] = request
            self._send(message)
            return await request.response

    def update(self, message: bytes, argument: bytes) -> None:
        """Send a change for all later requests; a process that starts later gets `argument`."""
        self._argument = argument
        self._send(message)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writer.transport.abort()
        self._child.kill()
        await wait_for_event(self._child.exited, KILL_LIMIT)
        # the transport ends in a later turn of the loop, which may be about to close
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours, limit=2**20)
            try:
                # from here on nothing is awaited: no request may be sent twice or be lost
                child = ChildProcess.start(
                    [self._module, self._argument],
                    mark=mark_below(secrets.token_hex(8)),
                    environment=clean_environment(),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                )
            except OSError:
                writer.transport.abort()
                raise
        self._child, self._reader, self._writer = child, reader, writer
        self._effort = Effort()
        self._ready = self._was_stopped = False
        self._broken_limit = None
        for request in self._waiting.values():
            self._send(request.message)

    def _send(self, message: bytes) -> None:
        # a process that died is noticed elsewhere, and everything is sent again to the next one
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(message)

    async def _serve(self) -> None:
        """Read responses until the process exits, record why, and continue with a new process."""
        while True:
            reading = asyncio.create_task(self._read_responses())
            try:
                await self._until_exit(reading)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            self._writer.transport.abort()
            self._record_exit()
            await self._respawn()

    async def _until_exit(self, reading: asyncio.Task[None]) -> None:
        exited = asyncio.create_task(self._child.exited.wait())
        try:
            await asyncio.wait({reading, exited}, return_when=asyncio.FIRST_COMPLETED)
            if not exited.done():
                await self._end_without_stream(exited)
            await asyncio.wait({reading}, timeout=DRAIN_LIMIT)
        finally:
            exited.cancel()

    async def _end_without_stream(self, exited: asyncio.Task[bool]) -> None:
        """End a process whose stream is broken; one that closed it is probably about to exit."""
        if self._broken_limit is None:
            await asyncio.wait({exited}, timeout=EXIT_LIMIT)
        if not exited.done():
            self._broken_limit = self._broken_limit or "its process closed its stream"
            self._child.kill()
            await exited

    async def _respawn(self) -> None:
        """Start the next process, with backoff while the machine has no resources to spare."""
        delay = RESTART_DELAY
        if self._failed_starts:
            await asyncio.sleep(min(delay * self._failed_starts, LONGEST_RESTART_DELAY))
        while True:
            try:
                return await self._spawn()
            except OSError as error:
                log.error("sandboxed process cannot be started", reason=str(error), retry_in=delay)
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_RESTART_DELAY)

    async def _read_responses(self) -> None:
        stream = self._reader
        try:
            while True:
                head, body = frame_lengths(await stream.readexactly(PREFIX))
                header, blobs = decode_frame(
                    await stream.readexactly(head), await stream.readexactly(body)
                )
                if header == READY:
                    self._ready, self._failed_starts = True, 0
                    continue
                request = self._waiting.pop(header.pop("id"))
                if not request.response.done():
                    request.response.set_result((header, blobs))
        except (asyncio.IncompleteReadError, OSError):
            return  # the end of the stream
        except _PROTOCOL_ERRORS:
            self._broken_limit = "its process sent an invalid response"

    # --- limits ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        """End a process that has spent too much on one request."""
        interval = min(0.5, self._limits.seconds / 4)
        while True:
            await asyncio.sleep(interval)
            # while a killed process exits, its reason must stay
            killed = self._broken_limit is not None or self._was_stopped
            if not killed and not self._child.exited.is_set():
                self._check_limits(interval)

    def _check_limits(self, interval: float) -> None:
        at_work = next(iter(self._waiting), None) if self._ready else -1
        self._effort.add(self._child.pid, at_work, interval)
        seconds = self._limits.seconds if self._ready else START_LIMIT
        if self._effort.memory_mb > self._limits.memory_mb:
            self._broken_limit = self._too_much_memory()
        elif at_work is not None:
            self._broken_limit = self._effort.broken_limit(seconds)
        self._was_stopped = self._effort.is_stopped_too_long
        if self._broken_limit is not None or self._was_stopped:
            self._child.kill()

    def _record_exit(self) -> None:
        """Count the exit against the request at work, which fails after too many.

        After its first fault a request is sent again, as the first one, to a new process: the
        cause may be what earlier requests left behind.
        """
        if not self._ready:
            self._record_failed_start()
            return
        if not self._waiting:
            return
        number, request = next(iter(self._waiting.items()))
        code = self._child.exit_code or 0
        if self._broken_limit is None and (self._was_stopped or code in _FROM_OUTSIDE):
            request.kills += 1
        else:
            request.faults += 1
        log.warning(
            "sandboxed process ended", subject=self._subject, cause=self._cause(code),
            faults=request.faults, kills=request.kills,
        )  # fmt: skip
        if request.faults >= FAULTS or request.kills >= KILLS:
            del self._waiting[number]
            if not request.response.done():
                message = f"the {self._subject} cannot be read: {self._cause(code)}"
                request.response.set_exception(GiveUp(message, kind=ErrorKind.PARSE))

    def _record_failed_start(self) -> None:
        """Count a process that did not start, which is no fault of the pending requests."""
        self._failed_starts += 1
        cause = self._cause(self._child.exit_code or 0)
        log.error("sandboxed process did not start", cause=cause, starts=self._failed_starts)
        if self._failed_starts >= FAILED_STARTS:
            for request in self._waiting.values():
                if not request.response.done():
                    message = f"the {self._subject} cannot be read now: {cause}"
                    request.response.set_exception(Retry(message, kind=ErrorKind.INTERNAL))
            self._waiting.clear()

    def _cause(self, code: int) -> str:
        if self._broken_limit is not None:
            return self._broken_limit
        if self._was_stopped:
            return "its process was stopped from outside"
        if code == OUT_OF_MEMORY:
            return self._too_much_memory()
        return f"its process ended with code {code}"

    def _too_much_memory(self) -> str:
        return f"it needs more than {self._limits.memory_mb} MB"


def clean_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of the environment that a sandboxed process gets."""
    return {
        name: value
        for name, value in environment.items()
        if name in _VARIABLES or name.startswith(_PREFIXES)
    }
