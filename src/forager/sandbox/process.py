"""A process that works on hostile input: whatever breaks its limits costs one answer, no more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Self

from forager.errors import ErrorKind, GiveUp
from forager.sandbox.frames import (
    OUT_OF_MEMORY,
    PREFIX,
    READY,
    decode_frame,
    encode_frame,
    frame_lengths,
)

# questions that wait inside one process: enough to keep it busy while the loop does something else
QUEUE_LENGTH = 8
# importing takes half a second, unless the machine is very busy
START_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    processes: int = 1
    seconds: float = 20.0
    memory_mb: int = 1024


Answer = tuple[dict[str, Any], list[bytes]]


@dataclass(slots=True)
class _Question:
    message: bytes
    answer: asyncio.Future[Answer]


class Sandbox:
    """One process that runs a module, and the questions it has been given, in order.

    `subject` is what the questions are about: whoever reads why there is no answer knows that word.
    """

    def __init__(self, module: str, argument: bytes, limits: SandboxLimits, subject: str) -> None:
        self._module = module
        self._subject = subject
        self._argument = argument
        self._limits = limits
        self._waiting: OrderedDict[int, _Question] = OrderedDict()
        self._room = asyncio.Semaphore(QUEUE_LENGTH)
        # when the process turned to what it is working on
        self._turned_at = time.monotonic()
        self._child: asyncio.subprocess.Process | None = None
        self._handle: int | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = False
        self._too_slow = False
        # questions that this very process has answered
        self._answered = 0

    @classmethod
    async def start(
        cls, module: str, argument: bytes, limits: SandboxLimits, *, subject: str = "page"
    ) -> Self:
        process = cls(module, argument, limits, subject)
        await process._spawn()
        process._tasks = [
            asyncio.create_task(process._serve()),
            asyncio.create_task(process._watch()),
        ]
        return process

    @property
    def load(self) -> int:
        return len(self._waiting)

    async def ask(self, number: int, header: dict[str, Any], body: bytes) -> Answer:
        async with self._room:
            # only now: pages may be large, and many may wait
            message = encode_frame(header, [body])
            question = _Question(message, asyncio.get_running_loop().create_future())
            if not self._waiting:
                self._turned_at = time.monotonic()
            self._waiting[number] = question
            self._send(message)
            return await question.answer

    def tell(self, message: bytes, argument: bytes) -> None:
        """Something that concerns all later questions; a process that starts gets `argument`."""
        self._argument = argument
        self._send(message)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._kill()
        if self._child is not None:
            await self._child.wait()
        self._let_go()

    async def _spawn(self) -> None:
        self._ready = self._too_slow = False
        self._answered = 0
        self._turned_at = time.monotonic()
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self._module,
            self._argument,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**20,
        )
        self._let_go()
        with contextlib.suppress(OSError):  # too many open files: it is killed by its number then
            self._handle = os.pidfd_open(self._child.pid)

    def _send(self, message: bytes) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        # a process that died is noticed by the reader, which sends everything again
        with contextlib.suppress(OSError, RuntimeError):
            self._child.stdin.write(message)

    async def _serve(self) -> None:
        """Read answers until the process dies; blame its question, and go on with a new process."""
        while True:
            await self._read_answers()
            assert self._child is not None
            code = await self._child.wait()
            # what earlier ones left behind may be to blame: a question gets a second chance, alone
            if self._too_slow or not self._answered:
                self._blame_current(self._cause(code))
            await self._spawn()
            for question in self._waiting.values():
                self._send(question.message)

    async def _read_answers(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        stream = self._child.stdout
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, ValueError):
            while True:
                head, body = frame_lengths(await stream.readexactly(PREFIX))
                header, blobs = decode_frame(
                    await stream.readexactly(head), await stream.readexactly(body)
                )
                self._turned_at = time.monotonic()
                if header == READY:
                    self._ready = True
                    continue
                self._answered += 1
                question = self._waiting.pop(header.pop("id"))
                if not question.answer.done():
                    question.answer.set_result((header, blobs))
        self._kill()

    async def _watch(self) -> None:
        """End a process that has been at one question for too long."""
        while True:
            await asyncio.sleep(min(1.0, self._limits.seconds / 4))
            limit = self._limits.seconds if self._ready else START_LIMIT
            if self._waiting and time.monotonic() - self._turned_at > limit:
                self._too_slow = True
                self._kill()

    def _blame_current(self, cause: str) -> None:
        if not self._waiting:
            return
        _, question = self._waiting.popitem(last=False)
        if not question.answer.done():
            question.answer.set_exception(
                GiveUp(f"the {self._subject} cannot be read: {cause}", kind=ErrorKind.PARSE)
            )

    def _kill(self) -> None:
        # not the child's own kill(): it polls first, and takes the exit code from who waits for it
        with contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            elif self._child is not None and self._child.returncode is None:
                self._child.kill()

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _cause(self, code: int) -> str:
        if self._too_slow:
            return f"it takes longer than {self._limits.seconds:g} s"
        if code == OUT_OF_MEMORY:
            return f"it needs more than {self._limits.memory_mb} MB"
        return f"its process ended with code {code}"
