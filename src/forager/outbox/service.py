"""The operations of the outbox that senders use; `claim` has the rules for sending."""

from __future__ import annotations

from forager.outbox.store import (
    DONE,
    claim,
    delete_lane,
    give_up_old,
    has_due,
    insert_failed,
    renew,
    select_backlog,
    unsent,
)

__all__ = [
    "DONE",
    "claim",
    "delete_lane",
    "give_up_old",
    "has_due",
    "insert_failed",
    "renew",
    "select_backlog",
    "unsent",
]
