"""Loaded in runners by `job_modules`: their sessions may wait a second instead of a minute."""

from __future__ import annotations

from forager.db import database

database.RUNNER_LIMITS = database.SessionLimits(
    statement_ms=2_000, lock_ms=1_000, idle_in_transaction_ms=1_000, answer_ms=3_000
)
