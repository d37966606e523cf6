"""`forager errors` and `forager dead-letters`: errors by cause, and tasks that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from forager.amounts import parse_duration
from forager.cli.options import AsJson, Cursor, Domain, Limit, Yes, argument, grouped, option
from forager.cli.output import (
    Columns,
    counted,
    long_time,
    note,
    note_more,
    on_one_line,
    say,
    show_json,
    show_list,
    show_rows,
    show_table,
)
from forager.cli.running import confirm, leave_if_unknown, with_database
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.db.cursor import Page
    from forager.db.database import Database
    from forager.settings import Settings
    from forager.tasks.dead_letters import DeadLetter, LetterFilter, LetterGroup
    from forager.tasks.errors import ErrorFilter, ErrorRow


app = typer.Typer(
    help="Errors of tasks: without a command, in groups by domain, type and message.",
    invoke_without_command=True,
)


@dataclass(frozen=True, slots=True)
class ErrorOptions:
    """Options that select errors."""

    domain: Domain = None
    type_: str | None = option("Only network, http, parse, validation or other.", "--type")
    since: str | None = option("Only the last 30min, 12h or 7d.")

    def filter(self, message: str | None = None, task: int | None = None) -> ErrorFilter:
        from forager.tasks.errors import error_filter

        return error_filter(
            domain=self.domain,
            error_type=self.type_,
            since=None if self.since is None else parse_duration(self.since),
            message=message,
            task_id=task,
        )


@app.callback()
@grouped
def errors(
    context: typer.Context,
    options: ErrorOptions,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Group errors by domain, type and message: how often, since when, and one example."""
    if context.invoked_subcommand is not None:
        return None
    from forager.tasks.errors import group_errors

    wanted = options.filter()
    page = with_database(
        context, lambda db, _: group_errors(db, wanted, cursor=cursor, limit=limit)
    )
    return show_list(page, as_json, _GROUP_COLUMNS, none="There are no such errors.")


@app.command()
@grouped
def show(
    context: typer.Context,
    error_id: int | None = argument("ID of one error.", metavar="[ID]"),
    *,
    options: ErrorOptions,
    message: str | None = option("Only errors with this message."),
    task: int | None = option("Only errors of this task."),
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List single errors, newest first; with an ID, show that one with its stack trace."""
    from forager.tasks.errors import get_error, list_errors

    if error_id is not None:
        found = with_database(context, lambda db, _: get_error(db, error_id))
        return show_json(found) if as_json else _show_one(found)
    wanted = options.filter(message, task)
    page = with_database(context, lambda db, _: list_errors(db, wanted, cursor=cursor, limit=limit))
    return show_list(page, as_json, _ERROR_COLUMNS, none="There are no such errors.")


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


def _show_one(row: ErrorRow) -> None:
    facts = {
        "error": row.id,
        "when": long_time(row.occurred_at),
        "domain": row.domain,
        "url": row.url,
        "task": row.task_id,
        "job": row.job_id,
        "stage": row.stage,
        "type": f"{row.error_type} ({row.error_kind})",
        "message": on_one_line(row.error_message),
    }
    show_table(" ,   ", [(k, v) for k, v in facts.items() if v is not None])
    if row.stack_trace:
        say(row.stack_trace)


letters_app = typer.Typer(
    help="Tasks that failed permanently: list by cause, retry, or dismiss.", no_args_is_help=True
)

Cause = Annotated[
    str | None, typer.Option(help="Only this cause: network, timeout, http_client, …")
]


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """Options that select dead letters."""

    ids: list[int] | None = argument("IDs of dead letters.", metavar="[ID]...")
    cause: Cause = None
    domain: Domain = None
    everything: bool = option("All dead letters.", "--all", default=False)

    def filter(self) -> LetterFilter:
        from forager.tasks.dead_letters import letter_filter

        if not (self.ids or self.cause or self.domain or self.everything):
            raise InvalidInput(
                "no dead letter was selected", hint="Give IDs, --cause, --domain or --all."
            )
        return letter_filter(ids=self.ids or None, cause=self.cause, domain=self.domain)


@letters_app.command("list")
def list_(
    context: typer.Context,
    cause: Cause = None,
    domain: Domain = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters by cause, then the newest individually."""
    from forager.tasks import dead_letters as letters

    wanted = letters.letter_filter(cause=cause, domain=domain)

    async def ask(database: Database, _: Settings) -> tuple[list[LetterGroup], Page[DeadLetter]]:
        return (
            await letters.group_letters(database, wanted),
            await letters.list_letters(database, wanted, cursor=cursor, limit=limit),
        )

    groups, page = with_database(context, ask)
    if as_json:
        return show_json({"groups": groups, "items": page.items, "next_cursor": page.next_cursor})
    if not page.items:
        return note("There are no such dead letters.")
    show_rows(_LETTER_GROUP_COLUMNS, groups)
    say("")
    show_rows(_LETTER_COLUMNS, page.items)
    note_more(page.next_cursor)
    return note("`forager dead-letters retry ID...` tries them again; `drop` lets them go.")


@letters_app.command()
@grouped
def retry(context: typer.Context, choice: LetterChoice, as_json: AsJson = False) -> None:
    """Retry tasks now, with all their retries."""
    from forager.tasks.dead_letters import retry_letters, unknown_letters

    wanted = choice.filter()

    async def ask(database: Database, _: Settings) -> tuple[int, list[int]]:
        unknown = await unknown_letters(database, wanted)
        return await retry_letters(database, wanted), unknown

    done, unknown = with_database(context, ask)
    _show_done("task", "retried", done, unknown, as_json)


@letters_app.command()
@grouped
def drop(
    context: typer.Context, choice: LetterChoice, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Dismiss dead letters; their tasks stay failed."""
    from forager.tasks.dead_letters import count_letters, drop_letters, unknown_letters

    wanted = choice.filter()

    async def ask(database: Database, _: Settings) -> tuple[int, list[int]]:
        unknown = await unknown_letters(database, wanted)
        if not choice.ids:
            count = await count_letters(database, wanted)
            confirm(f"Drop {counted(count, 'dead letter')}?", yes=yes)
        return await drop_letters(database, wanted), unknown

    done, unknown = with_database(context, ask)
    _show_done("dead letter", "dropped", done, unknown, as_json)


def _show_done(noun: str, done: str, count: int, unknown: list[int], as_json: bool) -> None:
    if as_json:
        show_json({done: count, "not_found": unknown})
    else:
        say(f"{counted(count, noun)} {done}")
    _leave_if_unknown(unknown)


def _leave_if_unknown(ids: list[int]) -> None:
    leave_if_unknown(ids, "open dead letter", "`forager dead-letters list` shows those there are.")


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
