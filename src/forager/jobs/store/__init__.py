"""The queue's SQL: one statement per function, no decisions. `queue.py` decides."""

from forager.jobs.store.failed_runs import (
    end_failed_run,
    recover_orphaned,
    recover_stale,
    select_stale,
)
from forager.jobs.store.leases import (
    beat,
    hold_lease,
    save_progress,
    select_checkpoint,
    select_held,
    select_held_by,
)
from forager.jobs.store.moves import (
    apply_move,
    assign_source,
    claim_jobs,
    delete_finished,
    insert_jobs,
)
from forager.jobs.store.reads import (
    CHANNEL,
    COLUMNS,
    count_jobs,
    select_active_job_of_source,
    select_events,
    select_events_of_many,
    select_job,
    select_jobs,
    select_jobs_by_id,
    select_jobs_by_prefix,
    select_last_events,
    select_trace,
    sum_pending_work,
)

__all__ = [
    "CHANNEL",
    "COLUMNS",
    "apply_move",
    "assign_source",
    "beat",
    "claim_jobs",
    "count_jobs",
    "delete_finished",
    "end_failed_run",
    "hold_lease",
    "insert_jobs",
    "recover_orphaned",
    "recover_stale",
    "save_progress",
    "select_active_job_of_source",
    "select_checkpoint",
    "select_events",
    "select_events_of_many",
    "select_held",
    "select_held_by",
    "select_job",
    "select_jobs",
    "select_jobs_by_id",
    "select_jobs_by_prefix",
    "select_last_events",
    "select_stale",
    "select_trace",
    "sum_pending_work",
]
