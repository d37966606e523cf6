"""The job queue: jobs, checkpoints, events, workers, and the fence every runner writes behind."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TYPE job_status AS ENUM
    ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused');

CREATE TABLE crawl_jobs (
    id                  uuid PRIMARY KEY,
    kind                text NOT NULL,
    payload             jsonb NOT NULL,
    priority            integer NOT NULL DEFAULT 0,
    status              job_status NOT NULL DEFAULT 'pending',
    worker_id           uuid,
    lease               bigint NOT NULL DEFAULT 0,
    progress_percentage smallint NOT NULL DEFAULT 0,
    created_at          timestamptz NOT NULL DEFAULT now(),
    run_after           timestamptz NOT NULL DEFAULT now(),
    started_at          timestamptz,
    completed_at        timestamptz,
    last_heartbeat      timestamptz,
    retry_count         integer NOT NULL DEFAULT 0,
    max_retries         integer NOT NULL DEFAULT 3,
    error_message       text,
    stop_reason         text,
    source_id           text,
    user_id             uuid,
    CONSTRAINT crawl_jobs_progress_percentage_check
        CHECK (progress_percentage BETWEEN 0 AND 100),
    CONSTRAINT crawl_jobs_retries_check CHECK (retry_count >= 0 AND max_retries >= 0),
    CONSTRAINT crawl_jobs_payload_check CHECK (jsonb_typeof(payload) = 'object'),
    CONSTRAINT crawl_jobs_worker_id_check CHECK (
        CASE status
            WHEN 'processing' THEN worker_id IS NOT NULL AND last_heartbeat IS NOT NULL
            WHEN 'paused' THEN true
            ELSE worker_id IS NULL
        END
    )
) WITH (fillfactor = 70);

CREATE INDEX crawl_jobs_claim_idx ON crawl_jobs (priority DESC, created_at, id, run_after)
    WHERE status = 'pending';
CREATE INDEX crawl_jobs_held_idx ON crawl_jobs (id) WHERE worker_id IS NOT NULL;
CREATE UNIQUE INDEX crawl_jobs_active_source_idx ON crawl_jobs (source_id)
    WHERE source_id IS NOT NULL AND status IN ('pending', 'processing', 'paused');
CREATE INDEX crawl_jobs_status_idx ON crawl_jobs (status, created_at, id);
CREATE INDEX crawl_jobs_created_idx ON crawl_jobs (created_at, id);
CREATE INDEX crawl_jobs_source_idx ON crawl_jobs (source_id, created_at);
CREATE INDEX crawl_jobs_user_idx ON crawl_jobs (user_id, created_at);
CREATE INDEX crawl_jobs_finished_idx ON crawl_jobs (completed_at)
    WHERE status IN ('completed', 'failed', 'cancelled');

CREATE TABLE crawl_states (
    job_id          uuid PRIMARY KEY REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    total_processed bigint NOT NULL DEFAULT 0,
    total_pending   bigint NOT NULL DEFAULT 0,
    checkpoint      jsonb NOT NULL DEFAULT '{}',
    updated_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT crawl_states_totals_check CHECK (total_processed >= 0 AND total_pending >= 0)
) WITH (fillfactor = 70);

CREATE TABLE job_events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      uuid NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    move        text NOT NULL,
    from_status job_status,
    to_status   job_status NOT NULL,
    actor       text NOT NULL,
    reason      text,
    lease       bigint NOT NULL
);
CREATE INDEX job_events_job_idx ON job_events (job_id, id);

CREATE TABLE workers (
    id         uuid PRIMARY KEY,
    host       text NOT NULL,
    pid        integer NOT NULL,
    process    text,
    version    text NOT NULL,
    capacity   integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    last_seen  timestamptz NOT NULL DEFAULT now(),
    state      text NOT NULL DEFAULT 'running',
    note       text
) WITH (fillfactor = 70);
"""

# Locks the job for this transaction, or refuses. An error rather than an empty result: it also
# stops the statements behind it when all of them were sent in one round trip.
FENCE = """
CREATE FUNCTION hold_lease(held_job uuid, held_lease bigint) RETURNS job_status
LANGUAGE plpgsql AS $$
DECLARE
    held_status job_status;
BEGIN
    SELECT status INTO held_status
      FROM crawl_jobs
     WHERE id = held_job AND lease = held_lease AND status IN ('processing', 'paused')
       FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'lease % of job % is not current', held_lease, held_job
            USING ERRCODE = 'FG001';
    END IF;
    RETURN held_status;
END
$$;
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(FENCE)


def downgrade() -> None:
    op.execute("DROP FUNCTION hold_lease(uuid, bigint)")
    op.execute("DROP TABLE workers, job_events, crawl_states, crawl_jobs")
    op.execute("DROP TYPE job_status")
