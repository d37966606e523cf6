"""Options that several commands share, each in the same words."""

from __future__ import annotations

from typing import Annotated

import typer

MAX_LIST = 1000

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Limit = Annotated[int, typer.Option(min=1, max=MAX_LIST, help="How many to show at most.")]
Capacity = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Jobs to run at the same time.", show_default="setting"),
]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the job's history.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="A job's id, or its beginning.")]
JobIds = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids of jobs, or their beginnings.")
]
