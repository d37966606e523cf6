"""Past one machine: what the larger parts need that are switched on by settings."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

OBJECT_STORAGE = """
ALTER TABLE archive_segments ADD COLUMN moved_to text, ADD COLUMN keep_until timestamptz;
ALTER TABLE image_files ADD COLUMN moved_to text;
"""
NO_OBJECT_STORAGE = """
ALTER TABLE image_files DROP COLUMN moved_to;
ALTER TABLE archive_segments DROP COLUMN keep_until, DROP COLUMN moved_to;
"""

REGIONS = """
ALTER TABLE domains ADD COLUMN region text,
    ADD CONSTRAINT domains_region_check CHECK (region ~ '^[a-z0-9-]{1,32}$');
ALTER TABLE proxies ADD COLUMN region text,
    ADD CONSTRAINT proxies_region_check CHECK (region ~ '^[a-z0-9-]{1,32}$');
ALTER TABLE workers ADD COLUMN region text;
ALTER TABLE crawl_jobs ADD COLUMN host text, ADD COLUMN region text;
UPDATE crawl_jobs SET host = substring(payload #>> '{urls,0}' FROM '^[a-z]+://([^/?#]+)')
 WHERE kind = 'crawl' AND status NOT IN ('completed', 'cancelled');
"""
NO_REGIONS = """
ALTER TABLE crawl_jobs DROP COLUMN region, DROP COLUMN host;
ALTER TABLE workers DROP COLUMN region;
ALTER TABLE proxies DROP COLUMN region;
ALTER TABLE domains DROP COLUMN region;
"""

PROXY_COSTS = """
ALTER TABLE proxies
    ADD COLUMN cost_amount numeric(18, 8), ADD COLUMN cost_unit text, ADD COLUMN cost_currency text,
    ADD CONSTRAINT proxies_cost_amount_check CHECK (cost_amount >= 0),
    ADD CONSTRAINT proxies_cost_unit_check CHECK (cost_unit IN ('request', 'GB', 'month')),
    ADD CONSTRAINT proxies_cost_currency_check CHECK (cost_currency ~ '^[A-Z]{3}$'),
    ADD CONSTRAINT proxies_cost_check
        CHECK (num_nulls(cost_amount, cost_unit, cost_currency) IN (0, 3));
CREATE TABLE proxy_usage (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    day date NOT NULL,
    domain_name text NOT NULL,
    proxy_id bigint NOT NULL REFERENCES proxies ON DELETE CASCADE,
    requests bigint NOT NULL,
    bytes bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX proxy_usage_key ON proxy_usage (day, domain_name, proxy_id);
CREATE INDEX proxy_usage_proxy_idx ON proxy_usage (proxy_id);
"""
NO_PROXY_COSTS = """
DROP TABLE proxy_usage;
ALTER TABLE proxies DROP COLUMN cost_currency, DROP COLUMN cost_unit, DROP COLUMN cost_amount;
"""

DISPATCH = """
CREATE TABLE dispatch_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage text NOT NULL,
    band smallint NOT NULL,
    domain_id bigint NOT NULL,
    task_ids bigint[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dispatch_outbox_stage_check CHECK (stage IN ('crawl', 'parse')),
    CONSTRAINT dispatch_outbox_band_check CHECK (band BETWEEN 1 AND 3)
);
CREATE INDEX dispatch_outbox_order_idx ON dispatch_outbox (band, id);
"""
NO_DISPATCH = "DROP TABLE dispatch_outbox"


SEARCH_ENGINE = """
CREATE TABLE search_indexes (
    kind text PRIMARY KEY,
    name text,
    uuid text,
    layout integer,
    complete_since timestamptz,
    building text,
    building_uuid text,
    building_layout integer,
    filled_to bigint NOT NULL DEFAULT 0,
    old text,
    fed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT search_indexes_kind_check CHECK (kind IN ('sections', 'products'))
) WITH (fillfactor = 50);
CREATE TABLE index_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    ref_id bigint NOT NULL,
    sections integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    last_error text
);
CREATE INDEX index_outbox_due_idx ON index_outbox (kind, next_attempt_at, id);
"""
NO_SEARCH_ENGINE = "DROP TABLE index_outbox; DROP TABLE search_indexes"

PRODUCT_ARCHIVING = "ALTER TABLE products ADD COLUMN restored_at timestamptz"
NO_PRODUCT_ARCHIVING = "ALTER TABLE products DROP COLUMN restored_at"

# a comparison that NaN fails too: it sorts above infinity
FINITE = {
    "crawl_states": ("seconds",),
    "domains": ("crawl_delay_seconds", "slow_delay"),
    "extractions": ("confidence",),
    "metric_values": ("value",),
    "parser_rollouts": ("canary_share",),
    "price_history": ("price", "list_price"),
    "products": ("price", "list_price", "rating"),
    "proxies": ("cost_amount",),
    "sources": ("max_shrink", "max_failed"),
    "crawl_tasks": ("popularity",),
}


def upgrade() -> None:
    for statements in (
        OBJECT_STORAGE,
        REGIONS,
        PROXY_COSTS,
        DISPATCH,
        SEARCH_ENGINE,
        PRODUCT_ARCHIVING,
    ):
        op.execute(statements)
    for table, columns in FINITE.items():
        for column in columns:
            op.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_finite_check"
                f" CHECK ({column} > '-Infinity' AND {column} < 'Infinity')"
            )


def downgrade() -> None:
    for table, columns in FINITE.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_finite_check")
    for statements in (
        NO_PRODUCT_ARCHIVING,
        NO_SEARCH_ENGINE,
        NO_DISPATCH,
        NO_PROXY_COSTS,
        NO_REGIONS,
        NO_OBJECT_STORAGE,
    ):
        op.execute(statements)
