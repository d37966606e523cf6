"""The crawl: domains and budgets, robots.txt, proxies, frontier, visited URLs, the ledger."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

LEDGER = """
ALTER TABLE crawl_states
    ADD COLUMN current_depth integer NOT NULL DEFAULT 0,
    ADD COLUMN discovered    bigint,
    ADD COLUMN fetched       bigint NOT NULL DEFAULT 0,
    ADD COLUMN unchanged     bigint NOT NULL DEFAULT 0,
    ADD COLUMN duplicate     bigint NOT NULL DEFAULT 0,
    ADD COLUMN failed        bigint NOT NULL DEFAULT 0,
    ADD COLUMN excluded      bigint NOT NULL DEFAULT 0,
    ADD COLUMN reasons       jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN bytes_fetched bigint NOT NULL DEFAULT 0,
    ADD COLUMN seconds       double precision NOT NULL DEFAULT 0,
    ADD COLUMN next_seq      bigint NOT NULL DEFAULT 0,
    ADD COLUMN waits_for     text,
    ADD COLUMN waits_until   timestamptz,
    ADD COLUMN pace          double precision NOT NULL DEFAULT 0,
    ADD COLUMN reported_at   timestamptz,
    ADD CONSTRAINT crawl_states_pace_check CHECK (pace >= 0 AND pace < 'Infinity'),
    ADD CONSTRAINT crawl_states_ledger_check CHECK (
        discovered = fetched + unchanged + duplicate + failed + excluded + total_pending
        OR discovered IS NULL
    );
ALTER TABLE crawl_states SET (fillfactor = 50);
"""

FETCHING = """
CREATE TABLE domains (
    id                      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_name             text NOT NULL,
    base_url                text NOT NULL,
    crawl_delay_seconds     numeric(10, 3),
    max_concurrent_requests integer,
    per_proxy_only          boolean NOT NULL DEFAULT false,
    is_active               boolean NOT NULL DEFAULT true,
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now(),
    next_slot_at            timestamptz NOT NULL DEFAULT now(),
    blocked_until           timestamptz,
    slow_delay              double precision NOT NULL DEFAULT 0,
    slowed_at               timestamptz NOT NULL DEFAULT now(),
    error_share             double precision NOT NULL DEFAULT 0,
    CONSTRAINT domains_domain_name_check CHECK (domain_name = lower(domain_name)),
    CONSTRAINT domains_crawl_delay_seconds_check
        CHECK (crawl_delay_seconds >= 0 AND crawl_delay_seconds < 10000000),
    CONSTRAINT domains_slow_delay_check CHECK (slow_delay >= 0 AND slow_delay <= 300),
    CONSTRAINT domains_error_share_check CHECK (error_share >= 0 AND error_share <= 1),
    CONSTRAINT domains_times_check
        CHECK (isfinite(next_slot_at) AND isfinite(blocked_until) AND isfinite(slowed_at)),
    CONSTRAINT domains_max_concurrent_requests_check CHECK (max_concurrent_requests >= 1)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX domains_domain_name_key ON domains (domain_name);
CREATE INDEX domains_is_active_idx ON domains (is_active);

CREATE TABLE domain_permits (
    domain_id  bigint NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
    holder     uuid NOT NULL,
    permits    integer NOT NULL,
    asked      integer NOT NULL,
    waiting    integer NOT NULL DEFAULT 0,
    wanted     integer NOT NULL DEFAULT 0,
    last_slot_at timestamptz,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (domain_id, holder)
);

CREATE TABLE robots_files (
    origin     text PRIMARY KEY,
    status     smallint NOT NULL,
    body       bytea NOT NULL,
    fetched_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE proxies (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    proxy_url            text NOT NULL,
    proxy_port           integer NOT NULL,
    proxy_protocol       text NOT NULL DEFAULT 'http',
    proxy_username       text,
    proxy_password       bytea,
    is_active            boolean NOT NULL DEFAULT true,
    disabled_reason      text,
    allow_private        boolean NOT NULL DEFAULT false,
    failure_count        integer NOT NULL DEFAULT 0,
    success_count        bigint NOT NULL DEFAULT 0,
    consecutive_failures integer NOT NULL DEFAULT 0,
    last_failure_reason  text,
    next_probe_at        timestamptz,
    probe_attempts       integer NOT NULL DEFAULT 0,
    last_used_at         timestamptz,
    last_success_at      timestamptz,
    last_failure_at      timestamptz,
    avg_response_time_ms integer,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT proxies_proxy_protocol_check
        CHECK (proxy_protocol IN ('http', 'https', 'socks5')),
    CONSTRAINT proxies_proxy_port_check CHECK (proxy_port BETWEEN 1 AND 65535)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX proxies_address_key
    ON proxies (proxy_protocol, proxy_url, proxy_port, coalesce(proxy_username, ''));
CREATE INDEX proxies_is_active_idx ON proxies (is_active);

CREATE TABLE proxy_slots (
    domain_id    bigint NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
    proxy_id     bigint NOT NULL REFERENCES proxies (id) ON DELETE CASCADE,
    next_slot_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT proxy_slots_next_slot_at_check CHECK (isfinite(next_slot_at)),
    PRIMARY KEY (domain_id, proxy_id)
) WITH (fillfactor = 70);
"""

CRAWL = """
CREATE TABLE crawl_frontier (
    job_id     uuid NOT NULL,
    depth      smallint NOT NULL,
    seq        bigint NOT NULL,
    url_hash   bytea NOT NULL,
    url        text NOT NULL,
    parent     bytea,
    via        text NOT NULL,
    attempts   smallint NOT NULL DEFAULT 0,
    not_before timestamptz,
    redirects  bytea[],
    PRIMARY KEY (job_id, depth, seq)
);
CREATE INDEX crawl_frontier_retry_idx ON crawl_frontier (job_id, not_before)
    WHERE not_before IS NOT NULL;

CREATE TABLE crawl_visited (
    job_id         uuid NOT NULL,
    url_hash       bytea NOT NULL,
    url            text NOT NULL,
    outcome        text NOT NULL,
    reason         text,
    detail         text,
    duplicate_of   text,
    http_status    smallint,
    depth          smallint NOT NULL,
    parent         bytea,
    via            text NOT NULL,
    attempts       smallint NOT NULL DEFAULT 0,
    content_type   text,
    title          text,
    size           integer,
    duration_ms    integer,
    settled_at     timestamptz NOT NULL DEFAULT now(),
    content_hash   bytea,
    etag           text,
    last_modified  text,
    outlinks       bytea,
    segment        text,
    segment_offset bigint,
    segment_length integer,
    PRIMARY KEY (job_id, url_hash)
);
CREATE INDEX crawl_visited_content_idx ON crawl_visited (job_id, content_hash)
    WHERE outcome IN ('fetched', 'unchanged') AND content_hash IS NOT NULL;
CREATE INDEX crawl_visited_segment_idx ON crawl_visited (segment) WHERE segment IS NOT NULL;

CREATE TABLE archive_segments (
    name       text PRIMARY KEY,
    job_id     uuid,
    lease      bigint NOT NULL,
    bytes      bigint NOT NULL DEFAULT 0,
    records    bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    written_at timestamptz NOT NULL DEFAULT now(),
    closed_at  timestamptz,
    going_at   timestamptz
);
CREATE INDEX archive_segments_job_idx ON archive_segments (job_id);
"""


def upgrade() -> None:
    for statements in (LEDGER, FETCHING, CRAWL):
        op.execute(statements)


def downgrade() -> None:
    op.execute("DROP TABLE archive_segments, crawl_visited, crawl_frontier")
    op.execute("DROP TABLE proxy_slots, proxies, robots_files, domain_permits, domains")
    op.execute("ALTER TABLE crawl_states DROP CONSTRAINT crawl_states_ledger_check")
    op.execute(
        """
        ALTER TABLE crawl_states
            DROP COLUMN current_depth, DROP COLUMN discovered, DROP COLUMN fetched,
            DROP COLUMN unchanged, DROP COLUMN duplicate, DROP COLUMN failed,
            DROP COLUMN excluded, DROP COLUMN reasons, DROP COLUMN bytes_fetched,
            DROP COLUMN seconds, DROP COLUMN next_seq, DROP COLUMN waits_for,
            DROP COLUMN waits_until, DROP COLUMN pace, DROP COLUMN reported_at
        """
    )
    op.execute("ALTER TABLE crawl_states SET (fillfactor = 70)")
