"""Shorter limits: delays that normally take minutes must fit into a run of two minutes.

Constants are patched, and settings are set in the usual way.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

# statement, lock, idle in transaction, TCP, answer: in milliseconds
SESSION = (10_000, 3_000, 3_000, 5_000, 6_000)

CONSTANTS: dict[str, dict[str, Any]] = {
    "forager.db.database": {"SILENCE_LIMIT": 4.0},
    "forager.db.outages": {"FULL_INTERVAL": 1.0},
    "forager.jobs.supervisor": {"ANSWER_LIMIT": 5.0},
    "forager.jobs.runner": {"DISK_FULL_DELAY": 2.0},
    "forager.fetch.budgets.store": {"PERMITS_LAST": 4.0},
    "forager.tasks.workers.supervisor": {"LONGEST_DELAY": 2.0},
    "forager.tasks.workers.worker": {"ANSWER_LIMIT": 5.0},
    "forager.webhooks.delivery": {
        "LEASE": 8.0,
        "FIRST_PAUSE": 0.2,
        "LONGEST_PAUSE": 2.0,
        # first wait, longest wait, attempts
        "RETRY": (0.5, 2.0, 1000),
    },
}
SETTINGS = {
    "job_modules": "chaos.hostile_jobs",
    "job_memory_limit_mb": 700,
    "poll_interval": 0.5,
    "heartbeat_interval": 1.0,
    "stall_limit": 12.0,
    "lease_limit": 15.0,
    "stale_after": 18.0,
    "watchdog_interval": 2.0,
    "progress_limit": 60.0,
    "shutdown_grace": 8.0,
    "retry_delay": 0.1,
    "retry_delay_max": 1.0,
    "scheduler_interval": 0.5,
    "task_retry_delay": 0.2,
    "task_retry_delay_max": 2.0,
    # processes die often here, and no page is the cause
    "max_retries": 8,
    "task_retries": 1000,
    "extraction_processes": 1,
    "images": False,
    "log_level": "warning",
    "log_format": "json",
}
# how long a process must be frozen to lose its lease
PAST_THE_LEASE = 25.0


def patches() -> dict[str, Callable[[ModuleType], None]]:
    return {name: _setter(values) for name, values in CONSTANTS.items()}


def _setter(values: dict[str, Any]) -> Callable[[ModuleType], None]:
    def change(module: ModuleType) -> None:
        for name, value in values.items():
            assert hasattr(module, name), f"{module.__name__} has no {name}"
            made = type(getattr(module, name))(*value) if name == "RETRY" else value
            setattr(module, name, made)
        if module.__name__ == "forager.db.database":
            module.SessionLimits.__init__.__defaults__ = SESSION
            module.RUNNER_LIMITS = module.SessionLimits()  # type: ignore[attr-defined]

    return change
