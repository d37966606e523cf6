"""`forager errors`: what goes wrong with tasks, in groups by cause and one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forager.amounts import parse_duration
from forager.cli.options import AsJson, Limit
from forager.cli.output import note, say, show_json, show_page, show_table
from forager.cli.sources import with_database
from forager.cli.words import long_time, on_one_line, short_time

if TYPE_CHECKING:
    from forager.tasks.errors import ErrorFilter, ErrorGroup, ErrorRow

app = typer.Typer(
    name="errors",
    help="Errors of tasks: without a command, in groups by domain, type and message.",
    invoke_without_command=True,
)

Domain = Annotated[
    str | None,
    typer.Option(
        help="Only of this host, of hosts below it, or of the domain that covers it.",
        show_default=False,
    ),
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type", help="Only network, http, parse, validation or other.", show_default=False
    ),
]
Since = Annotated[
    str | None, typer.Option(help="Only of the last 30min, 12h, 7d.", show_default=False)
]
Cursor = Annotated[str | None, typer.Option(help="Go on after this.", show_default=False)]


@app.callback()
def errors(
    context: typer.Context,
    domain: Domain = None,
    type_: Type = None,
    since: Since = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Group errors by domain, type and message: how often, since when, and one example."""
    if context.invoked_subcommand is not None:
        return None
    from forager.tasks.errors import group_errors

    wanted = _filter(domain, type_, since)
    page = with_database(
        context, lambda db, _: group_errors(db, wanted, cursor=cursor, limit=limit)
    )
    if as_json:
        return show_page(page.items, page.next_cursor)
    if not page.items:
        return note("There are no such errors.")
    _show_groups(page.items)
    return _say_more(page.next_cursor)


@app.command()
def show(
    context: typer.Context,
    error_id: Annotated[
        int | None,
        typer.Argument(metavar="[ID]", help="One error in full.", show_default=False),
    ] = None,
    domain: Domain = None,
    type_: Type = None,
    since: Since = None,
    message: Annotated[
        str | None, typer.Option(help="Only those of this group's message.", show_default=False)
    ] = None,
    task: Annotated[int | None, typer.Option(help="Only of this task.", show_default=False)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List single errors, newest first; with an ID, show that one with its stack trace."""
    from forager.tasks.errors import get_error, list_errors

    if error_id is not None:
        found = with_database(context, lambda db, _: get_error(db, error_id))
        return show_json(found) if as_json else _show_one(found)
    wanted = _filter(domain, type_, since, message, task)
    page = with_database(context, lambda db, _: list_errors(db, wanted, cursor=cursor, limit=limit))
    if as_json:
        return show_page(page.items, page.next_cursor)
    if not page.items:
        return note("There are no such errors.")
    _show_list(page.items)
    return _say_more(page.next_cursor)


def _filter(
    domain: str | None,
    type_: str | None,
    since: str | None,
    message: str | None = None,
    task: int | None = None,
) -> ErrorFilter:
    from forager.tasks.errors import error_filter

    return error_filter(
        domain=domain,
        error_type=type_,
        since=None if since is None else parse_duration(since),
        message=message,
        task_id=task,
    )


def _show_groups(groups: list[ErrorGroup]) -> None:
    columns: dict[str, dict[str, object]] = {
        "COUNT": {"justify": "right"},
        "TYPE": {},
        "DOMAIN": {},
        "FIRST": {},
        "LAST": {},
        "MESSAGE": {"cut": True},
        "EXAMPLE": {"cut": True},
    }
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
    show_table(columns, rows)


def _show_list(rows: list[ErrorRow]) -> None:
    columns: dict[str, dict[str, object]] = {
        "ID": {"justify": "right"},
        "WHEN": {},
        "STAGE": {},
        "KIND": {},
        "TASK": {"justify": "right"},
        "MESSAGE": {"cut": True},
        "URL": {"cut": True},
    }
    show_table(
        columns,
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
    show_table({" ": {}, "  ": {}}, [(k, v) for k, v in facts.items() if v is not None])
    if row.stack_trace:
        say(row.stack_trace)


def _say_more(cursor: str | None) -> None:
    if cursor is not None:
        note(f"There are more: --cursor {cursor}")
