"""`forager products audit`: whether the catalogue is sound and fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.cli.options import AsJson
from forager.cli.output import note, show_json, show_table
from forager.cli.sources import with_database
from forager.cli.words import counted

if TYPE_CHECKING:
    from forager.products.audit import Audit


def audit(
    context: typer.Context,
    last: Annotated[
        bool, typer.Option("--last", help="Show what the last one found instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look now for what contradicts itself or grows old; workers do so every day."""
    from forager.products.audit import audit_catalog, last_audit

    if last:
        found = with_database(context, lambda db, _: last_audit(db))
    else:
        found = with_database(context, audit_catalog)
    return show_json(found) if as_json else _show(found)


def _show(found: Audit) -> None:
    if found.findings:
        columns: dict[str, dict[str, Any]] = {
            "CONCERN": {},
            "COUNT": {"justify": "right"},
            "WHAT": {},
            "EXAMPLES": {"cut": True},
        }
        show_table(
            columns,
            [
                (each.concern.value, each.count, each.meaning, ", ".join(map(str, each.examples)))
                for each in found.findings
            ],
        )
    note(
        f"{counted(found.checks, 'check')} in {found.seconds:.1f} s:"
        f" {counted(len(found.findings), 'finding')}"
    )
