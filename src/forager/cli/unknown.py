"""What was named and is not there: said on standard error, beside what was done to the rest."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from forager.cli.failures import USAGE, complain

SHOWN = 20


def leave_if_unknown(ids: Sequence[int], noun: str, hint: str) -> None:
    """End with the exit code of a wrong id, if there is one among those that were named."""
    if not ids:
        return
    shown = ", ".join(str(each) for each in ids[:SHOWN])
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    complain(f"there is no {noun} {shown}{more}; the others were seen to", hint)
    raise typer.Exit(USAGE)
