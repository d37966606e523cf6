"""The SQL of access: one statement per function, no decisions."""

from forager.access.store.answers import (
    delete_expired_answers,
    insert_answer,
    reserve_answer,
    select_answer,
)
from forager.access.store.keys import (
    any_key,
    find_key,
    insert_key,
    revoke_key,
    select_key,
    select_keys,
)
from forager.access.store.permits import select_seconds_taken, take_permits
from forager.access.store.quotas import (
    lock_owner,
    select_quota,
    select_source_owner,
    select_spending,
    select_usage,
    upsert_quota,
)

__all__ = [
    "any_key",
    "delete_expired_answers",
    "find_key",
    "insert_answer",
    "insert_key",
    "lock_owner",
    "reserve_answer",
    "revoke_key",
    "select_answer",
    "select_key",
    "select_keys",
    "select_quota",
    "select_seconds_taken",
    "select_source_owner",
    "select_spending",
    "select_usage",
    "take_permits",
    "upsert_quota",
]
