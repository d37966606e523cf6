"""Products: tasks with attempts and errors, products with prices and images, parsers, events."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

DOMAINS = """
ALTER TABLE domains
    ADD COLUMN crawl_frequency interval,
    ADD COLUMN adaptive boolean,
    ADD COLUMN min_frequency interval,
    ADD COLUMN max_frequency interval,
    ADD COLUMN use_proxies boolean,
    ADD COLUMN allow_private boolean NOT NULL DEFAULT false,
    ADD COLUMN currency text,
    ADD COLUMN task_hold text,
    ADD CONSTRAINT domains_crawl_frequency_check CHECK (crawl_frequency > interval '0'),
    ADD CONSTRAINT domains_frequencies_check
        CHECK (min_frequency > interval '0' AND max_frequency >= min_frequency),
    ADD CONSTRAINT domains_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    ADD CONSTRAINT domains_task_hold_check CHECK (task_hold IN ('paused', 'stopped'));
ALTER TABLE archive_segments ADD COLUMN worker_id uuid;
ALTER TABLE workers ADD COLUMN role text NOT NULL DEFAULT 'jobs';
"""

TASKS = """
CREATE TABLE crawl_tasks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id bigint NOT NULL REFERENCES domains (id),
    url text NOT NULL,
    url_hash bytea NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    priority smallint NOT NULL DEFAULT 5,
    popularity double precision NOT NULL DEFAULT 0,
    scheduled_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    completed_at timestamptz,
    retry_count integer NOT NULL DEFAULT 0,
    max_retries integer NOT NULL DEFAULT 3,
    error_kind text,
    error_message text,
    crawl_frequency interval,
    adapted_frequency interval,
    next_crawl_at timestamptz,
    hold text,
    lease bigint NOT NULL DEFAULT 0,
    worker_id uuid,
    etag text,
    last_modified text,
    parser_version text,
    segment text,
    segment_offset bigint,
    segment_length integer,
    found_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT crawl_tasks_status_check
        CHECK (status IN ('pending', 'queued', 'crawling', 'downloaded', 'parsing', 'completed',
                          'failed')),
    CONSTRAINT crawl_tasks_priority_check CHECK (priority BETWEEN 1 AND 10),
    CONSTRAINT crawl_tasks_retries_check CHECK (retry_count >= 0 AND max_retries >= 0),
    CONSTRAINT crawl_tasks_crawl_frequency_check CHECK (crawl_frequency > interval '0'),
    CONSTRAINT crawl_tasks_hold_check CHECK (hold IN ('paused', 'stopped')),
    CONSTRAINT crawl_tasks_worker_id_check
        CHECK ((worker_id IS NOT NULL) = (status IN ('crawling', 'parsing')))
) WITH (fillfactor = 70);
CREATE INDEX crawl_tasks_domain_idx ON crawl_tasks (domain_id, id);
CREATE INDEX crawl_tasks_downloaded_idx
    ON crawl_tasks (priority, scheduled_at, id) WHERE status = 'downloaded';
CREATE INDEX crawl_tasks_failed_idx ON crawl_tasks (domain_id, id) WHERE status = 'failed';
CREATE INDEX crawl_tasks_held_idx ON crawl_tasks (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX crawl_tasks_hold_idx ON crawl_tasks (id) WHERE hold IS NOT NULL;
CREATE INDEX crawl_tasks_next_crawl_idx
    ON crawl_tasks (next_crawl_at) WHERE status = 'completed';
CREATE INDEX crawl_tasks_pending_idx
    ON crawl_tasks (domain_id, priority, scheduled_at, popularity DESC, id)
    WHERE status = 'pending' AND hold IS NULL;
CREATE INDEX crawl_tasks_queued_idx
    ON crawl_tasks (priority, scheduled_at, popularity DESC, id) WHERE status = 'queued';
CREATE INDEX crawl_tasks_segment_idx ON crawl_tasks (segment) WHERE segment IS NOT NULL;
CREATE UNIQUE INDEX crawl_tasks_url_hash_key ON crawl_tasks (url_hash);

CREATE TABLE task_control (
    singleton boolean DEFAULT true PRIMARY KEY,
    hold text,
    ticked_at timestamptz,
    CONSTRAINT task_control_singleton_check CHECK (singleton),
    CONSTRAINT task_control_hold_check CHECK (hold IN ('paused', 'stopped'))
);

CREATE TABLE task_attempts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id bigint NOT NULL,
    domain_id bigint NOT NULL,
    stage text NOT NULL,
    lease bigint NOT NULL,
    attempt smallint NOT NULL,
    outcome text NOT NULL,
    error_kind text,
    error_message text,
    http_status smallint,
    final_url text,
    proxy_id bigint,
    worker_id uuid,
    started_at timestamptz,
    finished_at timestamptz NOT NULL DEFAULT now(),
    duration_ms integer,
    size integer,
    segment text,
    segment_offset bigint,
    segment_length integer,
    CONSTRAINT task_attempts_stage_check CHECK (stage IN ('download', 'parse'))
);
CREATE INDEX task_attempts_finished_idx ON task_attempts (finished_at);
CREATE INDEX task_attempts_segment_idx ON task_attempts (segment) WHERE segment IS NOT NULL;
CREATE INDEX task_attempts_task_idx ON task_attempts (task_id, id);

CREATE TABLE error_logs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    crawl_task_id bigint,
    job_id uuid,
    domain_id bigint,
    stage text NOT NULL,
    error_type text NOT NULL,
    error_kind text NOT NULL,
    error_message text NOT NULL,
    message_key text NOT NULL,
    stack_trace text,
    url text,
    occurred_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX error_logs_group_idx
    ON error_logs (domain_id, error_type, message_key, occurred_at);
CREATE INDEX error_logs_occurred_idx ON error_logs (occurred_at);
CREATE INDEX error_logs_task_idx
    ON error_logs (crawl_task_id, id) WHERE crawl_task_id IS NOT NULL;

CREATE TABLE dead_letters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id bigint NOT NULL,
    domain_id bigint NOT NULL,
    url text NOT NULL,
    stage text NOT NULL,
    error_type text NOT NULL,
    error_kind text NOT NULL,
    error_message text NOT NULL,
    message_key text NOT NULL,
    attempts integer NOT NULL,
    died_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,
    resolution text,
    CONSTRAINT dead_letters_resolution_check CHECK (resolution IN ('retried', 'dropped')),
    CONSTRAINT dead_letters_resolved_at_check
        CHECK ((resolution IS NULL) = (resolved_at IS NULL))
);
CREATE INDEX dead_letters_cause_idx
    ON dead_letters (error_kind, domain_id, id) WHERE resolved_at IS NULL;
CREATE UNIQUE INDEX dead_letters_open_key ON dead_letters (task_id) WHERE resolved_at IS NULL;
CREATE INDEX dead_letters_resolved_idx
    ON dead_letters (resolved_at) WHERE resolved_at IS NOT NULL;
"""

PRODUCTS = """
CREATE TABLE products (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id bigint NOT NULL REFERENCES domains (id),
    crawl_task_id bigint REFERENCES crawl_tasks (id) ON DELETE SET NULL,
    url text NOT NULL,
    url_hash bytea NOT NULL,
    product_name text NOT NULL,
    description text,
    price numeric(14, 4),
    list_price numeric(14, 4),
    currency text,
    availability text,
    rating numeric(3, 2),
    review_count bigint,
    brand text,
    category text,
    sku text,
    gtin text,
    variants jsonb NOT NULL DEFAULT '[]',
    content_hash bytea NOT NULL,
    evidence jsonb NOT NULL DEFAULT '{}',
    problems jsonb NOT NULL DEFAULT '[]',
    metadata jsonb NOT NULL DEFAULT '{}',
    parser text NOT NULL,
    parser_version text NOT NULL,
    language text,
    tsv tsvector NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    price_changed_at timestamptz,
    CONSTRAINT products_price_check CHECK (price >= 0 AND list_price >= 0),
    CONSTRAINT products_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT products_rating_check CHECK (rating BETWEEN 0 AND 5),
    CONSTRAINT products_review_count_check CHECK (review_count >= 0)
) WITH (fillfactor = 80);
CREATE INDEX products_availability_idx ON products (availability, created_at, id);
CREATE INDEX products_brand_idx ON products (lower(brand), created_at, id);
CREATE INDEX products_category_idx ON products (lower(left(category, 200)), created_at, id);
CREATE INDEX products_created_idx ON products (created_at, id);
CREATE INDEX products_domain_idx ON products (domain_id, created_at, id);
CREATE INDEX products_name_idx ON products (left(product_name, 200));
CREATE INDEX products_price_idx ON products (price, id);
CREATE INDEX products_problems_idx ON products (created_at, id) WHERE problems <> '[]';
CREATE INDEX products_task_idx ON products (crawl_task_id);
CREATE INDEX products_tsv_idx ON products USING gin (tsv);
CREATE INDEX products_updated_idx ON products (updated_at, id);
CREATE UNIQUE INDEX products_url_hash_key ON products (url_hash);

CREATE TABLE price_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id bigint NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    price numeric(14, 4),
    list_price numeric(14, 4),
    currency text,
    availability text,
    recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX price_history_product_idx ON price_history (product_id, recorded_at, id);
CREATE INDEX price_history_recorded_idx ON price_history (recorded_at);

CREATE TABLE images (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id bigint NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    image_url text NOT NULL,
    url_hash bytea NOT NULL,
    image_path text,
    alt_text text,
    image_type text NOT NULL DEFAULT 'primary',
    position integer NOT NULL DEFAULT 0,
    width integer,
    height integer,
    file_size integer,
    content_hash bytea,
    status text NOT NULL DEFAULT 'pending',
    problem text,
    attempts smallint NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    fetched_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT images_image_type_check
        CHECK (image_type IN ('primary', 'gallery', 'thumbnail')),
    CONSTRAINT images_status_check
        CHECK (status IN ('pending', 'stored', 'refused', 'failed'))
) WITH (fillfactor = 80);
CREATE INDEX images_file_idx ON images (content_hash);
CREATE INDEX images_known_idx ON images (url_hash, fetched_at) WHERE status = 'stored';
CREATE INDEX images_pending_idx ON images (next_attempt_at, id) WHERE status = 'pending';
CREATE INDEX images_product_idx ON images (product_id, position);
CREATE UNIQUE INDEX images_url_key ON images (product_id, url_hash);

CREATE TABLE image_files (
    content_hash bytea PRIMARY KEY,
    path text NOT NULL,
    media_type text NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    file_size integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    touched_at timestamptz NOT NULL DEFAULT now(),
    going_at timestamptz
);
"""

PARSING = """
CREATE TABLE extractions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id bigint NOT NULL,
    product_id bigint,
    domain_id bigint NOT NULL,
    url text NOT NULL,
    parser text NOT NULL,
    parser_version text NOT NULL,
    role text NOT NULL DEFAULT 'active',
    outcome text NOT NULL,
    confidence double precision,
    fields jsonb NOT NULL DEFAULT '{}',
    evidence jsonb NOT NULL DEFAULT '{}',
    problems jsonb NOT NULL DEFAULT '[]',
    error_message text,
    segment text,
    segment_offset bigint,
    segment_length integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT extractions_role_check CHECK (role IN ('active', 'canary')),
    CONSTRAINT extractions_outcome_check
        CHECK (outcome IN ('ok', 'suspect', 'incomplete', 'failed'))
);
CREATE INDEX extractions_created_idx ON extractions (created_at);
CREATE INDEX extractions_domain_idx ON extractions (domain_id, role, id);
CREATE INDEX extractions_parser_idx ON extractions (parser, parser_version, id);
CREATE INDEX extractions_segment_idx ON extractions (segment) WHERE segment IS NOT NULL;
CREATE INDEX extractions_task_idx ON extractions (task_id, id);

CREATE TABLE parse_rates (
    domain_id bigint NOT NULL,
    parser text NOT NULL,
    parser_version text NOT NULL,
    role text NOT NULL,
    day date NOT NULL,
    pages integer NOT NULL DEFAULT 0,
    good integer NOT NULL DEFAULT 0,
    PRIMARY KEY (domain_id, parser, parser_version, role, day)
) WITH (fillfactor = 70);

CREATE TABLE parser_rollouts (
    parser text PRIMARY KEY,
    active_version text NOT NULL,
    previous_version text,
    canary_version text,
    canary_share double precision,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT parser_rollouts_canary_share_check
        CHECK (canary_share > 0 AND canary_share <= 1),
    CONSTRAINT parser_rollouts_canary_version_check
        CHECK ((canary_version IS NULL) = (canary_share IS NULL))
);
"""

EVENTS = """
CREATE TABLE catalog_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    product_id bigint,
    domain_id bigint,
    payload jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX catalog_events_kind_idx ON catalog_events (kind, id);
CREATE INDEX catalog_events_occurred_idx ON catalog_events (occurred_at);
CREATE INDEX catalog_events_product_idx ON catalog_events (product_id, id);

CREATE TABLE webhooks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url text NOT NULL,
    secret bytea NOT NULL,
    kinds text[] NOT NULL DEFAULT '{}',
    domain_id bigint,
    allow_private boolean NOT NULL DEFAULT false,
    is_active boolean NOT NULL DEFAULT true,
    disabled_reason text,
    failures integer NOT NULL DEFAULT 0,
    rests_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX webhooks_url_key ON webhooks (url);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic text NOT NULL,
    ref_id bigint NOT NULL,
    target_id bigint,
    created_at timestamptz NOT NULL DEFAULT now(),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    sent_at timestamptz,
    given_up_at timestamptz,
    claimed_by uuid
) WITH (fillfactor = 70);
CREATE INDEX outbox_claimed_idx ON outbox (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX outbox_done_idx
    ON outbox ((coalesce(sent_at, given_up_at)))
    WHERE coalesce(sent_at, given_up_at) IS NOT NULL;
CREATE INDEX outbox_target_idx ON outbox (topic, target_id, id);
CREATE INDEX outbox_unsent_idx
    ON outbox (topic, target_id, next_attempt_at, id)
    WHERE sent_at IS NULL AND given_up_at IS NULL;
"""


def upgrade() -> None:
    for statements in (DOMAINS, TASKS, PRODUCTS, PARSING, EVENTS):
        op.execute(statements)
    op.execute("INSERT INTO task_control DEFAULT VALUES")


def downgrade() -> None:
    op.execute("DROP TABLE outbox, webhooks, catalog_events")
    op.execute("DROP TABLE parser_rollouts, parse_rates, extractions")
    op.execute("DROP TABLE image_files, images, price_history, products")
    op.execute("DROP TABLE dead_letters, error_logs, task_attempts, task_control, crawl_tasks")
    op.execute("ALTER TABLE workers DROP COLUMN role")
    op.execute("ALTER TABLE archive_segments DROP COLUMN worker_id")
    op.execute(
        """
        ALTER TABLE domains
            DROP COLUMN crawl_frequency, DROP COLUMN adaptive, DROP COLUMN min_frequency,
            DROP COLUMN max_frequency, DROP COLUMN use_proxies, DROP COLUMN allow_private,
            DROP COLUMN currency, DROP COLUMN task_hold
        """
    )
