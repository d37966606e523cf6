"""Background services as a command of their own: `forager scheduler`, `forager watchdog`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from forager.cli.running import run_until_stopped

if TYPE_CHECKING:
    from forager.db.database import Database
    from forager.services.service import Service
    from forager.settings import Settings


async def run_until_signal(
    database: Database, settings: Settings, command: str, services: Iterable[Service]
) -> None:
    """Run services until Ctrl-C or SIGTERM."""
    from forager.logs import get_logger
    from forager.processes.identity import process_name
    from forager.services.report import identify, run_services

    stopping = asyncio.Event()

    async def until_stopped() -> None:
        # logged from here, when signals are handled already
        get_logger(command).info(f"{command} started")
        await stopping.wait()

    async with run_services(database, settings, identify(command, process_name()), services):
        await run_until_stopped(until_stopped(), stopping.set)
