"""`forager tasks`: the commands of operations, and the stored responses of visits."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from forager.cli.operations import commands_of
from forager.cli.options import argument, option
from forager.cli.output import say
from forager.cli.running import CommandServices, runs
from forager.tasks.archived_page import visited_page
from forager.tasks.operations.changes import tasks

app = commands_of(tasks)


@app.command()
@runs
async def page(
    services: CommandServices,
    task: str = argument("Task ID or URL."),
    visit: int = option("Number of the visit; 1 is the newest stored response.", default=1, min=1),
    output: Path | None = option("Write to this file.", "--output", "-o", metavar="FILE"),
) -> None:
    """Print or save the stored response of a visit."""
    found = await services.tasks.get(task)
    saved = await visited_page(services.database, services.settings, found.id, visit=visit)
    if output is None:
        sys.stdout.buffer.write(saved.body)
    else:
        await asyncio.to_thread(output.write_bytes, saved.body)
        say(f"{len(saved.body)} bytes of {saved.url} written to {output}.")
