"""Answers searches of the `forager` command on a Unix socket in the home folder.

Only the owner of that folder can connect, and the same person could open the database. A search
that fails is not answered: the command repeats it and reports the error.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forager import __version__
from forager.cli.quick import COMMAND, SOCKET, TIMEOUT, depends_on_folder, settings_of
from forager.errors import error_text
from forager.logs import get_logger
from forager.settings import load_settings

if TYPE_CHECKING:
    from rich.console import Console

    from forager.db.database import Database
    from forager.settings import Settings

log = get_logger("api")

# the longest command line that Linux accepts as one argument
_MAX_QUESTION = 1 << 18
# of the path of a socket, on all systems
_MAX_PATH = 100


@asynccontextmanager
async def quick_answers(database: Database, settings: Settings) -> AsyncIterator[None]:
    """Answer commands while the block runs; the last installation to start answers.

    Without a socket, as in a home folder that is missing, every command searches by itself.
    """
    path = settings.home / SOCKET
    server = await _listen(_Answering(database, settings))
    is_ours = _identity(path)
    try:
        yield
    finally:
        if server is not None:
            server.close()
            if _identity(path) == is_ours:
                path.unlink(missing_ok=True)


async def _listen(answering: _Answering) -> asyncio.Server | None:
    path = answering.settings.home / SOCKET
    if len(os.fsencode(path)) > _MAX_PATH or _has_own_settings(answering.settings):
        return None
    try:
        server = await asyncio.start_unix_server(answering.on_connection, path)
        path.chmod(0o600)
    except OSError as error:
        log.info("commands search by themselves", reason=error_text(error))
        return None
    return server


def _has_own_settings(settings: Settings) -> bool:
    """Whether a flag or a file of this folder gives settings that a command may not have."""
    return depends_on_folder() or load_settings().database_url != settings.database_url


def _identity(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _Answering:
    database: Database
    settings: Settings

    async def on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._answer(json.loads(await _read(reader)))
                writer.write(json.dumps(answer).encode())
                await writer.drain()
        except Exception as error:  # the command reports what is wrong
            reason = f"{type(error).__name__}: {error_text(error)}"
            log.info("a search is left to the command", reason=reason)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, question: Mapping[str, Any]) -> dict[str, str]:
        if question["version"] != __version__ or question["settings"] != settings_of(os.environ):
            return {}
        from forager.cli.crawls.search import find, show_hits
        from forager.cli.output import json_bytes
        from forager.cli.running import CommandServices

        options = await asyncio.to_thread(_options, question["arguments"])
        if options is None:
            return {}
        services = CommandServices(self.database, self.settings, language=question["language"])
        as_json, words = options.pop("as_json"), " ".join(options.pop("words"))
        page = await find(services, words, **options)
        if as_json:
            return {"out": json_bytes(page).decode(), "err": ""}
        out, err = (_console(terminal) for terminal in question["terminals"])
        show_hits(page, out, err)
        return {"out": out.file.getvalue(), "err": err.file.getvalue()}  # type: ignore[attr-defined]


async def _read(reader: asyncio.StreamReader) -> bytes:
    data = await reader.read(_MAX_QUESTION)
    while part := await reader.read(_MAX_QUESTION):
        data += part
        if len(data) > _MAX_QUESTION:
            raise ValueError("too long")
    return data


def _options(arguments: list[str]) -> dict[str, Any] | None:
    """The options of a search, as its command reads them; None for what only a command answers."""
    from forager.cli.crawls.search import WORDS
    from forager.cli.main import COMMANDS, LazyCommands
    from forager.documents.operations.reading import SearchFilters

    if "--help" in arguments:  # it would be printed here
        return None
    group = LazyCommands(COMMANDS)[COMMAND]
    with group.make_context(COMMAND, list(arguments)) as context:
        name, command, rest = group.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        if command is not group.commands[WORDS]:
            return None
        with command.make_context(name, rest, parent=context) as own:
            given = dict(own.params)
    wanted = {name: given.pop(name) for name in SearchFilters.model_fields}
    return {**given, "wanted": SearchFilters.model_validate(wanted)}


def _console(terminal: Mapping[str, Any] | None) -> Console:
    from forager.cli.output import console

    made = console(StringIO(), terminal=None if terminal is None else terminal["environment"])
    if terminal is not None:
        made.width = terminal["columns"]
    return made
