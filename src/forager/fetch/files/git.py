"""Runs git with limits: time, memory, sizes of files, and what it answers."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from forager.errors import ErrorKind, GiveUp, Retry
from forager.fetch.files.tree import MAX_FILES, too_many
from forager.processes.started import MARK_VARIABLE

FETCH_SECONDS = 1800.0
MAX_PACK_BYTES = 4 * 1024**3
MAX_MEMORY = 2 * 1024**3
MAX_LISTING = 128 * 1024**2
MAX_MESSAGES = 64 * 1024
_CHUNK = 64 * 1024


async def run_git(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: Path | None,
    given: bytes = b"",
    network: bool = False,
) -> bytes:
    """What it writes. Raise GiveUp for a listing that is too long, GiveUp or Retry if it fails."""
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=dict(environment),
            stdin=file,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    assert process.stdout is not None
    assert process.stderr is not None
    messages = asyncio.create_task(_messages(process.stderr))
    try:
        limit_resources(process.pid)
        async with asyncio.timeout(FETCH_SECONDS):
            output = await _listing(process.stdout)
            errors = await messages
            await process.wait()
    except TimeoutError:
        raise Retry(
            f"git did not finish within {FETCH_SECONDS:g} s", kind=ErrorKind.TIMEOUT
        ) from None
    finally:
        if not messages.done() or not process.stdout.at_eof() or process.returncode is None:
            _kill_group(process.pid)
            # pipes that were not read to their end would stay open
            await asyncio.gather(_drop(process.stdout), messages, return_exceptions=True)
            await process.wait()
    if process.returncode != 0:
        raise _failed(errors, network=network)
    return output


async def _listing(stream: asyncio.StreamReader) -> bytes:
    """All of it. A small repository can list its folders again and again, so it is counted."""
    found = bytearray()
    entries = 0
    while chunk := await stream.read(_CHUNK):
        found += chunk
        entries += chunk.count(b"\0")
        if len(found) > MAX_LISTING or entries > MAX_FILES:
            raise too_many()
    return bytes(found)


async def _drop(stream: asyncio.StreamReader) -> None:
    while await stream.read(_CHUNK):
        pass


async def _messages(stream: asyncio.StreamReader) -> str:
    """The beginning of the messages; the rest is read and dropped."""
    found = b""
    while chunk := await stream.read(_CHUNK):
        found = (found + chunk)[:MAX_MESSAGES]
    return found.decode("utf-8", "replace")


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def limit_resources(pid: int) -> None:
    """Limit a process of git and those that it starts."""
    try:
        resource.prlimit(pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (MAX_PACK_BYTES, MAX_PACK_BYTES))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except ProcessLookupError:
        pass  # it has ended


def _failed(message: str, *, network: bool) -> GiveUp | Retry:
    lines = [line for line in message.splitlines() if line.strip()]
    text = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
    shown = "git: " + (text or (lines[-1] if lines else "failed without a message"))[:300]
    final = ("not found", "couldn't find remote", "Authentication", "could not read Username",
             "not appear to be a git", "redirect")  # fmt: skip
    if network and not any(each in message for each in final):
        return Retry(shown, kind=ErrorKind.NETWORK)
    return GiveUp(shown, kind=ErrorKind.NETWORK if network else ErrorKind.PARSE)


_ALWAYS = {
    # within MAX_MEMORY, however large the packs are
    "core.packedGitLimit": "512m",
    "core.packedGitWindowSize": "32m",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.helper": "",
    "fetch.fsckObjects": "true",
    "fetch.negotiationAlgorithm": "noop",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "http.proxy": "",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "60",
}


def git_environment(home: Path, settings: Mapping[str, str], *, protocols: str) -> dict[str, str]:
    """Nothing of the configuration or environment of the user. Headers are not in arguments."""
    given = [(name.partition("#")[0], value) for name, value in {**_ALWAYS, **settings}.items()]
    numbered: Iterable[tuple[str, str]] = (
        pair
        for number, (name, value) in enumerate(given)
        for pair in ((f"GIT_CONFIG_KEY_{number}", name), (f"GIT_CONFIG_VALUE_{number}", value))
    )
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_ASKPASS": "true",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(given)),
        MARK_VARIABLE: os.environ.get(MARK_VARIABLE, ""),
        **dict(numbered),
    }
