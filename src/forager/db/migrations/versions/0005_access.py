"""Access: API keys, what each owner may use, and answers that are given again."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

KEYS = """
CREATE TABLE api_keys (
    id text PRIMARY KEY,
    secret_hash bytea NOT NULL,
    name text NOT NULL,
    user_id uuid NOT NULL,
    scope text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    CONSTRAINT api_keys_scope_check CHECK (scope IN ('read', 'operate', 'admin')),
    CONSTRAINT api_keys_secret_hash_check CHECK (octet_length(secret_hash) = 32)
) WITH (fillfactor = 70);
CREATE INDEX api_keys_created_idx ON api_keys (created_at, id);
CREATE INDEX api_keys_user_idx ON api_keys (user_id);
"""

QUOTAS = """
CREATE TABLE owner_quotas (
    user_id uuid PRIMARY KEY,
    active_jobs integer,
    pages_per_job bigint,
    pages_per_day bigint,
    requests_per_minute integer,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT owner_quotas_amounts_check
        CHECK (active_jobs >= 0 AND pages_per_job >= 1 AND pages_per_day >= 0
               AND requests_per_minute >= 1)
);
"""

ANSWERS = """
CREATE TABLE idempotency_keys (
    user_id uuid NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    status smallint,
    answer bytea,
    sealed boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_created_idx ON idempotency_keys (created_at);
"""

# failed pages are few, and what people look for first: without it, a list of them reads all
PAGES = """
CREATE INDEX crawl_visited_failed_idx ON crawl_visited (job_id, url_hash)
    WHERE outcome = 'failed';
"""


def upgrade() -> None:
    for statements in (KEYS, QUOTAS, ANSWERS, PAGES):
        op.execute(statements)


def downgrade() -> None:
    op.execute("DROP INDEX crawl_visited_failed_idx")
    op.execute("DROP TABLE idempotency_keys, owner_quotas, api_keys")
