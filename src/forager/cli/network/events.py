"""`forager events`: events as the dashboard describes them."""

from __future__ import annotations

from forager.cli.operations import commands_of
from forager.cli.output import Columns, on_one_line
from forager.events.event import EventKind
from forager.events.operations import event_log
from forager.web.event_text import Event, summary_of

LONGEST = 300


def describe(event: Event) -> str:
    """Describe an event in one line; of an unknown kind, list the values by name."""
    if event.kind in list(EventKind):
        parts = [str(event.payload.get("name") or ""), summary_of(event)]
        summary = ": ".join(filter(None, parts))
    else:
        summary = ", ".join(f"{name}: {value}" for name, value in event.payload.items())
    return on_one_line(summary.replace("\N{NO-BREAK SPACE}", " "))[:LONGEST]


EVENT_COLUMNS: Columns = {
    "ID>": "id", "WHEN": "occurred_at", "KIND": "kind", "PRODUCT>": "product_id",
    "DOMAIN": "domain", "WHAT…": describe,
}  # fmt: skip

app = commands_of(event_log, {"list": EVENT_COLUMNS})
