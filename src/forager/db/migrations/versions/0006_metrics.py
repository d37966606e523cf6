"""Metrics: numbers that all processes add to; and the trace that a job belongs to."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

METRICS = """
CREATE TABLE metric_values (
    name text NOT NULL,
    labels text[] NOT NULL,
    part text NOT NULL,
    value double precision NOT NULL,
    CONSTRAINT metric_values_pkey PRIMARY KEY (name, labels, part)
) WITH (fillfactor = 50);
CREATE TABLE metric_writers (
    id uuid PRIMARY KEY,
    addition bigint NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
"""

SERVICES = """
CREATE TABLE service_processes (
    id uuid PRIMARY KEY,
    command text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    process text,
    started_at timestamptz NOT NULL DEFAULT now(),
    last_seen timestamptz NOT NULL DEFAULT now(),
    services jsonb NOT NULL
) WITH (fillfactor = 50);
"""

TRACES = "ALTER TABLE crawl_jobs ADD COLUMN trace text"


def upgrade() -> None:
    for statements in (METRICS, SERVICES, TRACES):
        op.execute(statements)


def downgrade() -> None:
    op.execute("ALTER TABLE crawl_jobs DROP COLUMN trace")
    op.execute("DROP TABLE service_processes, metric_writers, metric_values")
