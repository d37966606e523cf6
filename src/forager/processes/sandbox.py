"""A process for hostile input: input that exceeds its limits costs one response, nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
from collections import OrderedDict
from collections.abc import Hashable, Set
from dataclasses import dataclass
from typing import Any, Self

from forager.backoff import backoff
from forager.clock import wait_for_event
from forager.errors import ErrorKind, GiveUp, Retry, error_text
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
from forager.processes.started import clean_environment
from forager.processes.tree import mark_below
from forager.processes.usage import RequestUsage
from forager.settings import Settings

log = get_logger("sandbox")

# contexts that one process keeps, in bytes of their messages; the least recently used are dropped
CONTEXT_BYTES = 16 * 1024 * 1024
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


class Withdrawn(Exception):
    """The request was not begun, because one of the same user ended its process."""


class SandboxContext:
    """Parameters of many requests: a process receives each message of it once.

    A message reaches a process before the first request that is sent to it afterwards. The `key`
    is unique among the contexts of a pool; the process finds it in each message and request.
    """

    __slots__ = ("key", "messages")

    def __init__(self, key: str) -> None:
        self.key = key
        self.messages: list[bytes] = []

    def add(self, header: dict[str, Any]) -> None:
        """Change the parameters of all later requests."""
        self.messages.append(encode_frame({"context": self.key, **header}, []))


@dataclass(slots=True)
class _Request:
    message: bytes
    context: SandboxContext | None
    response: asyncio.Future[Response]
    user: Hashable = None
    # how often a process ended that worked on it: by a fault in its code, and from outside
    faults: int = 0
    kills: int = 0


class Sandbox:
    """One process that runs a module, and its pending requests in order.

    A request that exceeds the limits, or repeatedly ends the process, fails with GiveUp. The
    process is replaced, and the other requests are sent again. `subject` names the input of
    requests in error messages. `SandboxPool` distributes requests over several sandboxes.
    """

    def __init__(self, module: str, argument: bytes, limits: SandboxLimits, subject: str) -> None:
        self._module = module
        self._subject = subject
        self._argument = argument
        self._limits = limits
        self._waiting: OrderedDict[int, _Request] = OrderedDict()
        # contexts that the process knows: messages and bytes that it received of each
        self._contexts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._context_bytes = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._child: ChildProcess
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._effort = RequestUsage()
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
        """A process that answers requests with a function of the module."""
        sandbox = cls(module, argument, limits, subject)
        await sandbox._spawn()
        sandbox._tasks = [
            asyncio.create_task(sandbox._serve()),
            asyncio.create_task(sandbox._watch()),
        ]
        return sandbox

    @property
    def load(self) -> int:
        """Number of requests that wait for an answer."""
        return len(self._waiting)

    def works_for(self, users: Set[Hashable]) -> bool:
        """Whether a request of one of these users is pending."""
        return any(request.user in users for request in self._waiting.values())

    async def request(
        self,
        number: int,
        header: dict[str, Any],
        body: bytes,
        context: SandboxContext | None = None,
        user: Hashable = None,
    ) -> Response:
        """The response to one request; GiveUp if it exceeds the limits.

        Withdrawn if another request of the same user ended the process before this one began.
        """
        if context is not None:
            header = {**header, "context": context.key}
        message = encode_frame(header, [body])
        request = _Request(message, context, asyncio.get_running_loop().create_future(), user)
        self._waiting[number] = request
        self._send_request(request)
        return await request.response

    def forget(self, key: str) -> None:
        known = self._contexts.pop(key, None)
        if known is not None:
            self._context_bytes -= known[1]
            self._send(encode_frame({"context": key, "forget": True}, []))

    async def stop(self) -> None:
        """End the process; waiting requests fail."""
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
        self._effort = RequestUsage()
        self._ready = self._was_stopped = False
        self._broken_limit = None
        self._contexts.clear()
        self._context_bytes = 0
        for request in self._waiting.values():
            self._send_request(request)

    def _send_request(self, request: _Request) -> None:
        """Send a request, after the part of its context that the process does not know yet."""
        if request.context is not None:
            self._send_context(request.context)
        self._send(request.message)

    def _send_context(self, context: SandboxContext) -> None:
        known, size = self._contexts.pop(context.key, (0, 0))
        for message in context.messages[known:]:
            self._send(message)
            size += len(message)
            self._context_bytes += len(message)
        self._contexts[context.key] = (len(context.messages), size)
        while len(self._contexts) > 1 and self._context_bytes > CONTEXT_BYTES:
            self.forget(next(iter(self._contexts)))

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
        failures = self._failed_starts
        while True:
            if failures:
                await asyncio.sleep(backoff(failures, RESTART_DELAY, LONGEST_RESTART_DELAY))
            try:
                return await self._spawn()
            except OSError as error:
                log.error("sandboxed process cannot be started", reason=error_text(error))
            failures += 1

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
            self._withdraw_behind(number, request.user)
        log.warning(
            "sandboxed process ended", subject=self._subject, cause=self._cause(code),
            faults=request.faults, kills=request.kills,
        )  # fmt: skip
        if request.faults >= FAULTS or request.kills >= KILLS:
            del self._waiting[number]
            if not request.response.done():
                message = f"the {self._subject} cannot be read: {self._cause(code)}"
                request.response.set_exception(GiveUp(message, kind=ErrorKind.PARSE))

    def _withdraw_behind(self, number: int, user: Hashable) -> None:
        """Return the other requests of a user, which may end the next processes as well."""
        if user is None:
            return
        others = [n for n, each in self._waiting.items() if each.user == user and n != number]
        for request in map(self._waiting.pop, others):
            if not request.response.done():
                request.response.set_exception(Withdrawn)

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
