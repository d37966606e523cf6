"""`forager jobs pages|workers`: what became of a job's URLs, and who is there to run jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.options import AsJson, Cursor, JobId, Limit
from forager.cli.output import note, show_json, show_list, show_table
from forager.cli.running import with_database
from forager.cli.words import on_one_line, short_time
from forager.crawl.settlement import Outcome

if TYPE_CHECKING:
    from forager.crawl.export.store import SettledUrl
    from forager.db.cursor import Page
    from forager.db.database import Database
    from forager.settings import Settings

RIGHT = {"justify": "right"}


def add_to(app: typer.Typer) -> None:
    for command in (pages, workers):
        app.command(command.__name__)(command)


def pages(
    context: typer.Context,
    job_id: JobId,
    outcome: Annotated[
        list[Outcome] | None, typer.Option(help="Only URLs with this outcome; may be repeated.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List what became of a job's URLs, in no particular order."""
    from forager.crawl.export.export import row_of
    from forager.crawl.settled import list_settled
    from forager.jobs.queue import Queue

    async def ask(database: Database, settings: Settings) -> Page[SettledUrl]:
        job = await Queue(database, settings).resolve(job_id)
        outcomes = tuple(outcome or Outcome)
        return await list_settled(database, job, outcomes=outcomes, cursor=cursor, limit=limit)

    page = with_database(context, ask)
    return show_list(
        page, as_json, _show_pages, none="No URL of this job is settled so.", document=row_of
    )


def workers(context: typer.Context, as_json: AsJson = False) -> None:
    """List workers that are, or lately were, there."""
    from forager.jobs.report import list_workers

    found = with_database(context, lambda db, _: list_workers(db))
    if as_json:
        return show_json({"items": found})
    if not found:
        return note("There are no workers. `forager worker` or `forager up` runs one.")
    return show_table(
        "ID, ROLE, STATE, REGION, HOST, PID>, SEEN, NOTE",
        [
            (
                each.id,
                each.role,
                each.state,
                each.region,
                each.host,
                each.pid,
                short_time(each.last_seen),
                on_one_line(each.note or ""),
            )
            for each in found
        ],
    )


def _show_pages(settled: Sequence[SettledUrl]) -> None:
    rows = [
        (each.outcome, each.http_status, on_one_line(each.detail or each.reason or ""), each.url)
        for each in settled
    ]
    show_table("OUTCOME, HTTP>, WHY…, URL…", rows)
