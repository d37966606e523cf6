"""`forager errors`: what goes wrong with tasks, in groups by cause and one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from forager.amounts import parse_duration
from forager.cli.options import AsJson, Cursor, Domain, Limit, grouped, option
from forager.cli.output import (
    long_time,
    on_one_line,
    say,
    short_time,
    show_json,
    show_list,
    show_table,
)
from forager.cli.running import with_database

if TYPE_CHECKING:
    from forager.tasks.errors import ErrorFilter, ErrorGroup, ErrorRow

app = typer.Typer(
    help="Errors of tasks: without a command, in groups by domain, type and message.",
    invoke_without_command=True,
)


@dataclass(frozen=True, slots=True)
class ErrorOptions:
    """Options that select errors."""

    domain: Domain = None
    type_: str | None = option("Only network, http, parse, validation or other.", "--type")
    since: str | None = option("Only of the last 30min, 12h, 7d.")

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
    return show_list(page, as_json, _show_groups, none="There are no such errors.")


@app.command()
@grouped
def show(
    context: typer.Context,
    error_id: Annotated[
        int | None, typer.Argument(metavar="[ID]", help="One error in full.")
    ] = None,
    *,
    options: ErrorOptions,
    message: Annotated[str | None, typer.Option(help="Only those of this group's message.")] = None,
    task: Annotated[int | None, typer.Option(help="Only of this task.")] = None,
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
    return show_list(page, as_json, _show_list, none="There are no such errors.")


def _show_groups(groups: Sequence[ErrorGroup]) -> None:
    rows = [
        (
            group.count,
            group.error_type,
            group.domain,
            short_time(group.first_seen),
            short_time(group.last_seen),
            on_one_line(group.message),
            group.example_url,
        )
        for group in groups
    ]
    show_table("COUNT>, TYPE, DOMAIN, FIRST, LAST, MESSAGE…, EXAMPLE…", rows)


def _show_list(rows: Sequence[ErrorRow]) -> None:
    show_table(
        "ID>, WHEN, STAGE, KIND, TASK>, MESSAGE…, URL…",
        [
            (
                row.id,
                short_time(row.occurred_at),
                row.stage,
                row.error_kind,
                row.task_id,
                on_one_line(row.error_message),
                row.url,
            )
            for row in rows
        ],
    )


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
