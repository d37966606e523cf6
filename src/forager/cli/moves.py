"""`forager jobs pause|resume|cancel|retry`: one move on one or more jobs."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from forager.cli import output
from forager.cli.asking import confirm
from forager.cli.failures import OK, complain
from forager.cli.options import AsJson, JobIds, Reason, Yes
from forager.cli.running import with_queue
from forager.cli.words import counted
from forager.errors import ForagerError

if TYPE_CHECKING:
    from forager.jobs.job import Job
    from forager.jobs.queue import Queue

Move = Callable[..., Coroutine[Any, Any, "Job"]]


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one id: the job after the move, or why there was none."""

    asked: str
    job: Job | None
    error: str | None
    hint: str | None
    exit_code: int


def add_to(app: typer.Typer) -> None:
    for command in (pause, resume, cancel, retry):
        app.command(command.__name__)(command)


def pause(
    context: typer.Context, job_ids: JobIds, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Hold jobs. A running one commits what it has first; until then it is pausing."""
    _move_all(context, job_ids, lambda queue: queue.pause, reason, as_json=as_json)


def resume(
    context: typer.Context, job_ids: JobIds, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Continue paused jobs from their last commit."""
    _move_all(context, job_ids, lambda queue: queue.resume, reason, as_json=as_json)


def cancel(
    context: typer.Context,
    job_ids: JobIds,
    reason: Reason = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End jobs for good; what they had not published is thrown away."""
    if len(job_ids) > 1:
        confirm(f"Cancel {counted(len(job_ids), 'job')} for good?", yes=yes)
    _move_all(context, job_ids, lambda queue: queue.cancel, reason, as_json=as_json)


def retry(
    context: typer.Context, job_ids: JobIds, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Let failed jobs run again from their last commit, with all their retries."""
    _move_all(context, job_ids, lambda queue: queue.retry, reason, as_json=as_json)


def _move_all(
    context: typer.Context,
    ids: list[str],
    choose: Callable[[Queue], Move],
    reason: str | None,
    *,
    as_json: bool,
) -> None:
    """Move each job, report on each, and leave with the worst exit code."""

    async def move_each(queue: Queue) -> list[Moved]:
        return [await _move_one(queue, choose(queue), text, reason) for text in ids]

    results = with_queue(context, move_each)
    if as_json:
        output.show_page(results, None)
    for result in results:
        if result.error is not None:
            complain(result.error, result.hint)
        elif result.job is not None and not as_json:
            output.say(f"{result.job.id} is {result.job.shown_status}")
    worst = max(result.exit_code for result in results)
    if worst != OK:
        raise typer.Exit(worst)


async def _move_one(queue: Queue, move: Move, text: str, reason: str | None) -> Moved:
    try:
        job = await move(await queue.resolve(text), actor=_person(), reason=reason)
    except ForagerError as error:
        return Moved(text, None, error.message, error.hint, error.exit_code)
    return Moved(text, job, None, None, OK)


def _person() -> str:
    """Who did it, for the job's history."""
    try:
        return f"user {getpass.getuser()}"
    except (OSError, KeyError):  # a container's user may have no name
        return "user"
