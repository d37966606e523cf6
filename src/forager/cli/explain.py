"""`forager explain`: what became of a URL, and why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import say, show_json

if TYPE_CHECKING:
    from forager.crawl.explain import Explanation
    from forager.settings import Settings


def explain(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="The URL in question, in any spelling.")],
    job: Annotated[
        str | None, typer.Option(help="In this crawl.", show_default="the latest that knows it")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of a URL: fetched, excluded by which rule, duplicate of what, failed why."""
    settings = flags_of(context).load()
    explanation = asyncio.run(_explain(settings, url, job))
    if as_json:
        show_json(explanation)
    else:
        _show(explanation)


async def _explain(settings: Settings, url: str, job: str | None) -> Explanation:
    from forager.crawl.explain import explain
    from forager.db.database import open_database
    from forager.jobs.queue import Queue

    async with open_database(settings, name="forager explain") as database:
        queue = Queue(database, settings)
        job_id = await queue.resolve(job) if job else None
        return await explain(database, queue, url, job_id=job_id)


def _show(explanation: Explanation) -> None:
    reason = f" ({explanation.reason})" if explanation.reason else ""
    say(f"{explanation.verdict}{reason}: {explanation.words}", "bold")
    if explanation.job_id:
        say(f"job {explanation.job_id}")
    if explanation.normalised != explanation.url:
        for step in explanation.steps:
            say(f"  {step}")
    if explanation.found_by:
        say("found by")
    for page in explanation.found_by:
        say(f"  {page.via:<9} {page.url}")
