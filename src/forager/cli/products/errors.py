"""`forager errors` and `forager dead-letters`: errors by cause, and tasks that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from forager.amounts import parse_duration
from forager.api.models.tasks import LetterChoice
from forager.cli.model_flags import ModelFlags
from forager.cli.options import (
    AsJson,
    Cursor,
    Domain,
    Limit,
    Yes,
    argument,
    grouped,
    option,
)
from forager.cli.output import (
    Columns,
    counted,
    note,
    note_more,
    on_one_line,
    say,
    show_facts,
    show_list,
    show_rows,
)
from forager.cli.running import CommandContext, answers, confirm, exit_if_unknown, with_services
from forager.db.cursor import Page
from forager.tasks import dead_letters as letters
from forager.tasks.dead_letters import LetterFilter
from forager.tasks.errors import ErrorFilter, ErrorRow, get_error, group_errors, list_errors

NO_ERRORS = "There are no such errors."

app = typer.Typer(
    help="Errors of tasks: without a command, in groups by domain, type and message.",
    invoke_without_command=True,
)


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Options that select groups of errors."""

    domain: Domain = None
    type_: str | None = option("Only network, http, parse, validation or other.", "--type")
    since: str | None = option("Only the last 30min, 12h or 7d.")

    def value(self, **more: Any) -> ErrorFilter:
        since = None if self.since is None else parse_duration(self.since)
        return ErrorFilter(domain=self.domain, error_type=self.type_, since=since, **more)


@dataclass(frozen=True, slots=True)
class ErrorOptions(GroupOptions):
    """Options that select single errors."""

    message: str | None = option("Only errors with this message.")
    task: int | None = option("Only errors of this task.")

    def value(self, **more: Any) -> ErrorFilter:
        return GroupOptions.value(self, message=self.message, task_id=self.task, **more)


_GROUP_COLUMNS: Columns = {
    "COUNT>": "count",
    "TYPE": "error_type",
    "DOMAIN": "domain",
    "FIRST": "first_seen",
    "LAST": "last_seen",
    "MESSAGE…": "message",
    "EXAMPLE…": "example_url",
}
_ERROR_COLUMNS: Columns = {
    "ID>": "id",
    "WHEN": "occurred_at",
    "STAGE": "stage",
    "KIND": "error_kind",
    "TASK>": "task_id",
    "MESSAGE…": "error_message",
    "URL…": "url",
}


@app.callback()
@grouped
def errors(
    context: typer.Context,
    wanted: Annotated[ErrorFilter, GroupOptions],
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Group errors by domain, type and message: how often, since when, and one example."""
    if context.invoked_subcommand is None:
        page = with_services(
            context, lambda here: group_errors(here.database, wanted, cursor=cursor, limit=limit)
        )
        show_list(page, as_json, _GROUP_COLUMNS, none=NO_ERRORS)


def _show_one(row: ErrorRow) -> None:
    facts = {
        "error": row.id,
        "when": row.occurred_at,
        "domain": row.domain,
        "url": row.url,
        "task": row.task_id,
        "job": row.job_id,
        "stage": row.stage,
        "type": f"{row.error_type} ({row.error_kind})",
        "message": on_one_line(row.error_message),
    }
    show_facts(facts)
    if row.stack_trace:
        say(row.stack_trace)


def _show_errors(found: ErrorRow | Page[ErrorRow]) -> None:
    if isinstance(found, Page):
        show_list(found, False, _ERROR_COLUMNS, none=NO_ERRORS)
    else:
        _show_one(found)


@app.command()
@answers(_show_errors)
async def show(
    here: CommandContext,
    error_id: int | None = argument("ID of one error.", metavar="[ID]"),
    *,
    wanted: Annotated[ErrorFilter, ErrorOptions],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List single errors, newest first; with an ID, show that one with its stack trace."""
    if error_id is not None:
        return await get_error(here.database, error_id)
    return await list_errors(here.database, wanted, cursor=cursor, limit=limit)


letters_app = typer.Typer(
    help="Tasks that failed permanently: list by cause, retry, or dismiss.", no_args_is_help=True
)

Cause = Annotated[
    str | None, typer.Option(help="Only this cause: network, timeout, http_client, …")
]


ChosenLetters = Annotated[
    LetterFilter,
    ModelFlags(
        LetterChoice,
        to=LetterChoice.filter,
        ids=typer.Argument(metavar="[ID]...", help="IDs of dead letters."),
    ),
]

_LETTER_GROUP_COLUMNS: Columns = {
    "COUNT>": "count",
    "CAUSE": "error_kind",
    "DOMAIN": "domain",
    "LAST": "last_died",
    "MESSAGE…": "message",
    "EXAMPLE…": "example_url",
}
_LETTER_COLUMNS: Columns = {
    "ID>": "id",
    "TASK>": "task_id",
    "CAUSE": "error_kind",
    "TRIES>": "attempts",
    "DIED": "died_at",
    "MESSAGE…": "error_message",
    "URL…": "url",
}


def _show_letters(found: dict[str, Any]) -> None:
    if not found["items"]:
        return note("There are no such dead letters.")
    show_rows(_LETTER_GROUP_COLUMNS, found["groups"])
    say("")
    show_rows(_LETTER_COLUMNS, found["items"])
    note_more(found["next_cursor"])
    return note("`forager dead-letters retry ID...` tries them again; `drop` dismisses them.")


@letters_app.command("list")
@answers(_show_letters)
async def list_(
    here: CommandContext,
    cause: Cause = None,
    domain: Domain = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List dead letters by cause, then the newest individually."""
    wanted = LetterFilter(cause=cause, domain=domain)
    groups = await letters.group_letters(here.database, wanted)
    page = await letters.list_letters(here.database, wanted, cursor=cursor, limit=limit)
    return {"groups": groups, "items": page.items, "next_cursor": page.next_cursor}


def _exit_if_unknown(done: dict[str, Any]) -> None:
    hint = "`forager dead-letters list` lists open dead letters."
    exit_if_unknown(done["not_found"], "open dead letter", hint)


@letters_app.command()
@answers(lambda done: f"{counted(done['retried'], 'task')} retried", then=_exit_if_unknown)
async def retry(here: CommandContext, wanted: ChosenLetters) -> object:
    """Retry tasks now, with all their retries."""
    unknown = await letters.unknown_letters(here.database, wanted)
    return {"retried": await letters.retry_letters(here.database, wanted), "not_found": unknown}


@letters_app.command()
@answers(lambda done: f"{counted(done['dropped'], 'dead letter')} dropped", then=_exit_if_unknown)
async def drop(here: CommandContext, wanted: ChosenLetters, yes: Yes = False) -> object:
    """Dismiss dead letters; their tasks stay failed."""
    unknown = await letters.unknown_letters(here.database, wanted)
    if not wanted.ids:
        count = await letters.count_letters(here.database, wanted)
        confirm(f"Drop {counted(count, 'dead letter')}?", yes=yes)
    return {"dropped": await letters.drop_letters(here.database, wanted), "not_found": unknown}
