-- Forager's schema, executed by migration 0001. Until the first release, change it here; after
-- that, `make revision MESSAGE="..."` starts a migration. `make schema-dump` then writes the
-- resulting schema to tests/db/schema.txt, which a test compares with the migrated database.
--
-- Tables are grouped by the package that owns them; only the owner writes to them.
--
-- Conventions
--   * Times are timestamptz, from the database's clock.
--   * Job, worker and section ids are UUIDv7; all other ids are bigint identities.
--   * Keys over URLs are SHA-256 hashes, because a URL can be longer than an index entry.
--   * Columns that change with every request or heartbeat are in no index, and their tables have a
--     fillfactor below 100, so that their updates stay HOT.
--   * Tables with very many rows have no foreign keys: the check costs a third of an insert. Purges
--     in chunks replace the cascade.


-- db ----------------------------------------------------------------------------------------------

-- The same ids as forager.db.ids.new_id makes, for rows that are inserted by plain SQL.
CREATE FUNCTION uuid7() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    -- 48 bits of milliseconds over a random UUIDv4; version 4 (0100) becomes 7 (0111)
    SELECT encode(
        set_bit(set_bit(overlay(
            uuid_send(gen_random_uuid())
            PLACING substring(
                int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
            FROM 1 FOR 6
        ), 52, 1), 53, 1),
        'hex'
    )::uuid
$$;


-- jobs --------------------------------------------------------------------------------------------

CREATE TYPE job_status AS ENUM
    ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused');

-- Jobs of all kinds. A payload is enough for one:
-- INSERT INTO crawl_jobs (payload) VALUES ('{"url": "https://example.com/"}').
CREATE TABLE crawl_jobs (
    id                  uuid PRIMARY KEY DEFAULT uuid7(),
    kind                text NOT NULL DEFAULT 'crawl',
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
    -- where it was requested, as a W3C traceparent
    trace               text,
    -- the host it crawls, and the region of that host's domain: only workers there claim it
    host                text,
    region              text,
    CONSTRAINT crawl_jobs_progress_percentage_check
        CHECK (progress_percentage BETWEEN 0 AND 100),
    CONSTRAINT crawl_jobs_retries_check CHECK (retry_count >= 0 AND max_retries >= 0),
    CONSTRAINT crawl_jobs_payload_check CHECK (jsonb_typeof(payload) = 'object'),
    -- a running job has a worker; otherwise only one that is about to pause may have one
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
-- at most one active job per source
CREATE UNIQUE INDEX crawl_jobs_active_source_idx ON crawl_jobs (source_id)
    WHERE source_id IS NOT NULL AND status IN ('pending', 'processing', 'paused');
CREATE INDEX crawl_jobs_status_idx ON crawl_jobs (status, created_at, id);
CREATE INDEX crawl_jobs_created_idx ON crawl_jobs (created_at, id);
CREATE INDEX crawl_jobs_source_idx ON crawl_jobs (source_id, created_at);
CREATE INDEX crawl_jobs_user_idx ON crawl_jobs (user_id, created_at);
CREATE INDEX crawl_jobs_finished_idx ON crawl_jobs (completed_at)
    WHERE status IN ('completed', 'failed', 'cancelled');

-- The audit log of a job: one row per move of its lifecycle.
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

-- Worker processes that run, or died recently.
CREATE TABLE workers (
    id         uuid PRIMARY KEY,
    host       text NOT NULL,
    pid        integer NOT NULL,
    -- identifies the process on its machine, so that others there notice its death
    process    text,
    version    text NOT NULL,
    capacity   integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    last_seen  timestamptz NOT NULL DEFAULT now(),
    state      text NOT NULL DEFAULT 'running',
    -- jobs or tasks
    role       text NOT NULL DEFAULT 'jobs',
    region     text,
    note       text
) WITH (fillfactor = 70);

-- Locks the job for this transaction, or raises. An error rather than an empty result: it also
-- stops the statements behind it when all of them were sent in one round trip.
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


-- fetch -------------------------------------------------------------------------------------------

-- A host and its limits. NULL means: the crawl's option, or the default of the settings.
CREATE TABLE domains (
    id                      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_name             text NOT NULL,
    base_url                text NOT NULL,
    crawl_delay_seconds     numeric(10, 3),
    max_concurrent_requests integer,
    -- limit each (domain, proxy) pair only, not the domain in total
    per_proxy_only          boolean NOT NULL DEFAULT false,
    is_active               boolean NOT NULL DEFAULT true,
    -- only workers of this region send requests to it; NULL: all workers
    region                  text,
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now(),

    -- how its tasks are scheduled and fetched
    crawl_frequency         interval,
    adaptive                boolean,
    min_frequency           interval,
    max_frequency           interval,
    use_proxies             boolean,
    -- an operator allowed its tasks to reach private addresses
    allow_private           boolean NOT NULL DEFAULT false,
    -- the currency that its prices must have
    currency                text,
    task_hold               text,

    -- the budget: these columns change with every request
    next_slot_at            timestamptz NOT NULL DEFAULT now(),
    blocked_until           timestamptz,
    slow_delay              double precision NOT NULL DEFAULT 0,
    -- when the extra delay last grew, was confirmed by errors, or halved with time
    slowed_at               timestamptz NOT NULL DEFAULT now(),
    -- moving average: the part of the last answers that were server errors or timeouts
    error_share             double precision NOT NULL DEFAULT 0,

    CONSTRAINT domains_domain_name_check CHECK (domain_name = lower(domain_name)),
    -- an upper limit refuses NaN and infinity as well: both are larger than any number
    CONSTRAINT domains_crawl_delay_seconds_check
        CHECK (crawl_delay_seconds >= 0 AND crawl_delay_seconds < 10000000),
    CONSTRAINT domains_slow_delay_check CHECK (slow_delay >= 0 AND slow_delay <= 300),
    CONSTRAINT domains_error_share_check CHECK (error_share >= 0 AND error_share <= 1),
    CONSTRAINT domains_times_check
        CHECK (isfinite(next_slot_at) AND isfinite(blocked_until) AND isfinite(slowed_at)),
    CONSTRAINT domains_max_concurrent_requests_check CHECK (max_concurrent_requests >= 1),
    CONSTRAINT domains_region_check CHECK (region ~ '^[a-z0-9-]{1,32}$'),
    CONSTRAINT domains_crawl_frequency_check CHECK (crawl_frequency > interval '0'),
    CONSTRAINT domains_frequencies_check
        CHECK (min_frequency > interval '0' AND max_frequency >= min_frequency),
    CONSTRAINT domains_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT domains_task_hold_check CHECK (task_hold IN ('paused', 'stopped'))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX domains_domain_name_key ON domains (domain_name);
CREATE INDEX domains_is_active_idx ON domains (is_active);

-- Connections that a runner may have open to a domain; they expire unless renewed.
CREATE TABLE domain_permits (
    domain_id  bigint NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
    holder     uuid NOT NULL,
    permits    integer NOT NULL,
    -- connections that its crawl was started with: the limit of a domain without a limit
    asked      integer NOT NULL,
    -- pages that wait for a slot or a connection, and slots that were asked for and not given
    waiting    integer NOT NULL DEFAULT 0,
    wanted     integer NOT NULL DEFAULT 0,
    -- the runner whose last reservation is oldest comes first
    last_slot_at timestamptz,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (domain_id, holder)
);

-- robots.txt as it was answered; the origin is scheme, host and port.
CREATE TABLE robots_files (
    origin     text PRIMARY KEY,
    -- 0: the host was unreachable
    status     smallint NOT NULL,
    body       bytea NOT NULL,
    fetched_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

-- A proxy, its cost and its health.
CREATE TABLE proxies (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    proxy_url            text NOT NULL,
    proxy_port           integer NOT NULL,
    proxy_protocol       text NOT NULL DEFAULT 'http',
    proxy_username       text,
    -- encrypted with the installation's key
    proxy_password       bytea,
    is_active            boolean NOT NULL DEFAULT true,
    disabled_reason      text,
    -- an operator allowed it to be at a private address
    allow_private        boolean NOT NULL DEFAULT false,
    -- only workers of this region use it; NULL: all workers
    region               text,
    cost_amount          numeric(18, 8),
    cost_unit            text,
    cost_currency        text,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),

    -- health: these columns change with every request
    failure_count        integer NOT NULL DEFAULT 0,
    success_count        bigint NOT NULL DEFAULT 0,
    consecutive_failures integer NOT NULL DEFAULT 0,
    last_failure_reason  text,
    -- set while failures keep it off: when to probe whether it has recovered
    next_probe_at        timestamptz,
    -- probes since the last success of a real request; each one waits longer
    probe_attempts       integer NOT NULL DEFAULT 0,
    last_used_at         timestamptz,
    last_success_at      timestamptz,
    last_failure_at      timestamptz,
    avg_response_time_ms integer,

    CONSTRAINT proxies_proxy_protocol_check
        CHECK (proxy_protocol IN ('http', 'https', 'socks5')),
    CONSTRAINT proxies_proxy_port_check CHECK (proxy_port BETWEEN 1 AND 65535),
    CONSTRAINT proxies_region_check CHECK (region ~ '^[a-z0-9-]{1,32}$'),
    CONSTRAINT proxies_cost_amount_check CHECK (cost_amount >= 0),
    CONSTRAINT proxies_cost_unit_check CHECK (cost_unit IN ('request', 'GB')),
    CONSTRAINT proxies_cost_currency_check CHECK (cost_currency ~ '^[A-Z]{3}$'),
    CONSTRAINT proxies_cost_check
        CHECK (num_nulls(cost_amount, cost_unit, cost_currency) IN (0, 3))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX proxies_address_key
    ON proxies (proxy_protocol, proxy_url, proxy_port, coalesce(proxy_username, ''));
CREATE INDEX proxies_is_active_idx ON proxies (is_active);

-- The budget of one (domain, proxy) pair.
CREATE TABLE proxy_slots (
    domain_id    bigint NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
    proxy_id     bigint NOT NULL REFERENCES proxies (id) ON DELETE CASCADE,
    next_slot_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT proxy_slots_next_slot_at_check CHECK (isfinite(next_slot_at)),
    PRIMARY KEY (domain_id, proxy_id)
) WITH (fillfactor = 70);

-- Requests and bytes of one domain through one proxy on one day (UTC).
CREATE TABLE proxy_usage (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    day         date NOT NULL,
    -- the domain whose limits applied, or the host where none did
    domain_name text NOT NULL,
    proxy_id    bigint NOT NULL REFERENCES proxies ON DELETE CASCADE,
    requests    bigint NOT NULL,
    bytes       bigint NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX proxy_usage_key ON proxy_usage (day, domain_name, proxy_id);
CREATE INDEX proxy_usage_proxy_idx ON proxy_usage (proxy_id);


-- archive -----------------------------------------------------------------------------------------

-- A WARC segment. Its row is inserted before its bytes are written, and deleted after its file.
CREATE TABLE archive_segments (
    name       text PRIMARY KEY,
    -- the writer: a job, or a worker of tasks; the segment outlives both while it is referred to
    job_id     uuid,
    worker_id  uuid,
    -- the lease it was written under: a holder of a later lease does not write here
    lease      bigint NOT NULL,
    bytes      bigint NOT NULL DEFAULT 0,
    records    bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    written_at timestamptz NOT NULL DEFAULT now(),
    closed_at  timestamptz,
    -- nothing refers to it and nothing may again: its file is being deleted
    going_at   timestamptz,
    -- the storage that has a verified copy
    moved_to   text,
    -- merged into another segment; readers that found it earlier may still read it
    keep_until timestamptz
);
CREATE INDEX archive_segments_job_idx ON archive_segments (job_id);


-- crawl -------------------------------------------------------------------------------------------

-- One row per job, written with each of its commits: progress, checkpoint and ledger.
CREATE TABLE crawl_states (
    job_id          uuid PRIMARY KEY REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    total_processed bigint NOT NULL DEFAULT 0,
    total_pending   bigint NOT NULL DEFAULT 0,
    checkpoint      jsonb NOT NULL DEFAULT '{}',
    updated_at      timestamptz NOT NULL DEFAULT now(),
    current_depth   integer NOT NULL DEFAULT 0,
    -- NULL for jobs that are not crawls and keep no ledger
    discovered      bigint,
    fetched         bigint NOT NULL DEFAULT 0,
    unchanged       bigint NOT NULL DEFAULT 0,
    duplicate       bigint NOT NULL DEFAULT 0,
    failed          bigint NOT NULL DEFAULT 0,
    excluded        bigint NOT NULL DEFAULT 0,
    -- counts by reason: of failed, excluded, duplicate and out-of-scope URLs, and of remarks
    reasons         jsonb NOT NULL DEFAULT '{}',
    bytes_fetched   bigint NOT NULL DEFAULT 0,
    seconds         double precision NOT NULL DEFAULT 0,
    next_seq        bigint NOT NULL DEFAULT 0,
    -- what the crawl waits for and how fast it is, written also while nothing is committed
    waits_for       text,
    waits_until     timestamptz,
    pace            double precision NOT NULL DEFAULT 0,
    reported_at     timestamptz,
    CONSTRAINT crawl_states_pace_check CHECK (pace >= 0 AND pace < 'Infinity'),
    CONSTRAINT crawl_states_totals_check CHECK (total_processed >= 0 AND total_pending >= 0),
    CONSTRAINT crawl_states_ledger_check CHECK (
        discovered = fetched + unchanged + duplicate + failed + excluded + total_pending
        OR discovered IS NULL
    )
) WITH (fillfactor = 50);

-- URLs that a job still has to fetch.
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
    -- hashes of the URLs that redirected here, in order
    redirects  bytea[],
    PRIMARY KEY (job_id, depth, seq)
);
-- retries are few, and not read in order of discovery
CREATE INDEX crawl_frontier_retry_idx ON crawl_frontier (job_id, not_before)
    WHERE not_before IS NOT NULL;

-- URLs that a job has settled, with their outcomes.
CREATE TABLE crawl_visited (
    job_id         uuid NOT NULL,
    url_hash       bytea NOT NULL,
    url            text NOT NULL,
    -- fetched, unchanged, duplicate, failed, excluded
    outcome        text NOT NULL,
    reason         text,
    -- the rule that excluded it, or the error it failed with
    detail         text,
    duplicate_of   text,
    -- failed, but the generation lists the version of its base
    carried_over   boolean NOT NULL DEFAULT false,
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
    -- in-scope links of the page, newline-separated, zstd
    outlinks       bytea,
    segment        text,
    segment_offset bigint,
    segment_length integer,
    PRIMARY KEY (job_id, url_hash)
);
CREATE INDEX crawl_visited_content_idx ON crawl_visited (job_id, content_hash)
    WHERE (outcome IN ('fetched', 'unchanged') OR carried_over) AND content_hash IS NOT NULL;
-- failed pages are few, and users look for them first
CREATE INDEX crawl_visited_failed_idx ON crawl_visited (job_id, url_hash)
    WHERE outcome = 'failed';
-- which rows refer to a segment that is to be deleted
CREATE INDEX crawl_visited_segment_idx ON crawl_visited (segment) WHERE segment IS NOT NULL;


-- documents ---------------------------------------------------------------------------------------
-- A process that deletes holds the source's row, and knows that no job of the source is running.

-- What a user wants crawled as one unit.
CREATE TABLE sources (
    id                   text PRIMARY KEY,
    -- the source as a lexeme in its search rows: § and this number
    number               bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    base_url             text NOT NULL,
    user_id              uuid,
    -- the generation that readers see
    published_generation bigint,
    -- number of generations it ever had
    generations          integer NOT NULL DEFAULT 0,
    -- a text search configuration; NULL until the first pages show their language
    text_config          text,
    keep_generations     integer NOT NULL DEFAULT 5,
    -- the quality gate: largest drop in pages, and largest share of failed URLs
    max_shrink           double precision NOT NULL DEFAULT 0.2,
    max_failed           double precision NOT NULL DEFAULT 0.1,
    -- the job that refreshes it: kind and payload of the last one that was published
    kind                 text NOT NULL,
    payload              jsonb NOT NULL,
    refresh_every        integer,
    refresh_cron         text,
    next_refresh_at      timestamptz,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    -- hidden from readers; the row is deleted after its generations
    deleted_at           timestamptz,
    CONSTRAINT sources_keep_generations_check CHECK (keep_generations >= 1),
    CONSTRAINT sources_gate_check CHECK (max_shrink >= 0 AND max_failed >= 0),
    CONSTRAINT sources_refresh_check CHECK (refresh_every IS NULL OR refresh_cron IS NULL),
    CONSTRAINT sources_payload_check CHECK (jsonb_typeof(payload) = 'object')
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sources_number_key ON sources (number);
CREATE INDEX sources_user_idx ON sources (user_id);
CREATE INDEX sources_next_refresh_idx ON sources (next_refresh_at)
    WHERE next_refresh_at IS NOT NULL;

-- The pages that one job found. `retired` generations are complete but not visible: published
-- earlier, or refused by the gate (published_at is NULL and note says why). `abandoned` ones are
-- being deleted.
CREATE TABLE generations (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id    text NOT NULL REFERENCES sources (id),
    number       integer NOT NULL,
    state        text NOT NULL DEFAULT 'building',
    -- no foreign key: a generation outlives its job
    job_id       uuid,
    -- the generation that was published when the job started, and that it is compared with
    base_id      bigint,
    pages        integer NOT NULL DEFAULT 0,
    added        integer NOT NULL DEFAULT 0,
    changed      integer NOT NULL DEFAULT 0,
    unchanged    integer NOT NULL DEFAULT 0,
    -- pages that failed temporarily, and are listed as they were in the base
    carried_over integer NOT NULL DEFAULT 0,
    -- known when the generation is complete
    removed      integer NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    retired_at   timestamptz,
    note         text,
    CONSTRAINT generations_state_check
        CHECK (state IN ('building', 'published', 'retired', 'abandoned'))
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX generations_number_key ON generations (source_id, number);
CREATE UNIQUE INDEX generations_published_key ON generations (source_id)
    WHERE state = 'published';
CREATE INDEX generations_job_idx ON generations (job_id);
CREATE UNIQUE INDEX generations_building_key ON generations (job_id) WHERE state = 'building';

-- One immutable version of one page of a source.
CREATE TABLE documents (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id         text NOT NULL,
    url_hash          bytea NOT NULL,
    content_hash      bytea NOT NULL,
    extractor_version text NOT NULL,
    url               text NOT NULL,
    -- in this collation, a prefix of a path is a range of the index
    path              text COLLATE "C" NOT NULL,
    title             text,
    language          text,
    created_at        timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX documents_version_key
    ON documents (source_id, url_hash, content_hash, extractor_version);
CREATE INDEX documents_path_idx ON documents (source_id, left(path, 600), id);

-- The manifest: which document each page of a generation is.
CREATE TABLE generation_documents (
    generation_id  bigint NOT NULL,
    url_hash       bytea NOT NULL,
    document_id    bigint NOT NULL,
    etag           text,
    last_modified  text,
    link_set       bytea,
    segment        text,
    segment_offset bigint,
    segment_length integer,
    -- when the server last sent or confirmed this version
    fetched_at     timestamptz NOT NULL,
    -- of a page that is carried over: since when it fails, why, in how many refreshes in a row
    carried_since  timestamptz,
    carried_reason text,
    carried_times  integer,
    PRIMARY KEY (generation_id, url_hash),
    CONSTRAINT generation_documents_carried_check
        CHECK (num_nonnulls(carried_since, carried_reason, carried_times) IN (0, 3))
);
-- the reverse order: which generations still need a document, and the filter of search
CREATE INDEX generation_documents_document_idx
    ON generation_documents (document_id, generation_id);
CREATE INDEX generation_documents_link_set_idx ON generation_documents (link_set);
CREATE INDEX generation_documents_segment_idx ON generation_documents (segment)
    WHERE segment IS NOT NULL;

-- The links of a page, shared by all pages and generations of a source with the same links.
CREATE TABLE link_sets (
    source_id text NOT NULL,
    hash      bytea NOT NULL,
    -- in-scope links, newline-separated, zstd, as in crawl_visited.outlinks
    links     bytea NOT NULL,
    PRIMARY KEY (source_id, hash)
);

-- A heading with its text; positions count from 0 in the order of the page.
CREATE TABLE sections (
    id          uuid PRIMARY KEY,
    document_id bigint NOT NULL,
    parent_id   uuid,
    heading     text NOT NULL,
    level       smallint NOT NULL,
    anchor      text,
    content     text NOT NULL,
    position    integer NOT NULL
);
CREATE UNIQUE INDEX sections_document_idx ON sections (document_id, position);

-- What search ranks: narrow, so that a query can read many rows. Both vectors hold the source as a
-- lexeme, so that the index alone finds the rows of one source.
CREATE TABLE section_search (
    document_id bigint NOT NULL,
    position    integer NOT NULL,
    head_tsv    tsvector NOT NULL,
    tsv         tsvector NOT NULL,
    PRIMARY KEY (document_id, position)
);
-- large pending lists: otherwise a crawl's commit would flush them; a background service does
CREATE INDEX section_search_head_idx ON section_search USING gin (head_tsv)
    WITH (gin_pending_list_limit = 16384);
CREATE INDEX section_search_idx ON section_search USING gin (tsv)
    WITH (gin_pending_list_limit = 32768);

-- The documents of the published generations.
CREATE VIEW documents_active AS
SELECT s.id AS source_id, m.generation_id, d.id, m.url_hash, d.url, d.path, d.title, d.language,
       d.content_hash, d.extractor_version, m.etag, m.last_modified, m.link_set, m.segment,
       m.segment_offset, m.segment_length, m.fetched_at
  FROM sources s
  JOIN generation_documents m ON m.generation_id = s.published_generation
  JOIN documents d ON d.id = m.document_id;

-- Their sections.
CREATE VIEW sections_active AS
SELECT a.source_id, a.generation_id, a.url, a.path, a.title, a.language, c.id, c.document_id,
       c.parent_id, c.heading, c.level, c.anchor, c.content, c.position
  FROM documents_active a
  JOIN sections c ON c.document_id = a.id;


-- tasks -------------------------------------------------------------------------------------------

-- One URL that is kept fresh. A worker holds a task by (worker_id, lease): the lease is incremented
-- by every claim and every revocation, and the holder of an older one can write nothing. Each
-- status has a small partial index instead of one index over all rows.
CREATE TABLE crawl_tasks (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id         bigint NOT NULL REFERENCES domains (id),
    url               text NOT NULL,
    -- SHA-256 of the normalized URL
    url_hash          bytea NOT NULL,
    status            text NOT NULL DEFAULT 'pending',
    -- 1 is highest
    priority          smallint NOT NULL DEFAULT 5,
    popularity        double precision NOT NULL DEFAULT 0,
    -- when it may start; includes the backoff of a retry
    scheduled_at      timestamptz NOT NULL DEFAULT now(),
    -- start and end of this round; of the last one while the task waits
    started_at        timestamptz,
    completed_at      timestamptz,
    retry_count       integer NOT NULL DEFAULT 0,
    max_retries       integer NOT NULL DEFAULT 3,
    error_kind        text,
    error_message     text,
    -- as requested; NULL: the domain's, then the default of the settings
    crawl_frequency   interval,
    -- the current interval of adaptive scheduling
    adapted_frequency interval,
    next_crawl_at     timestamptz,
    hold              text,
    lease             bigint NOT NULL DEFAULT 0,
    worker_id         uuid,
    etag              text,
    last_modified     text,
    -- the parser version that read the archived page: validators are sent while it is current
    parser_version    text,
    segment           text,
    segment_offset    bigint,
    segment_length    integer,
    -- what started tracking it: a user, a file, or the crawl that found it
    found_by          text,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
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
-- the scheduler skips tasks on hold without reading them
CREATE INDEX crawl_tasks_pending_idx
    ON crawl_tasks (domain_id, priority, scheduled_at, popularity DESC, id)
    WHERE status = 'pending' AND hold IS NULL;
CREATE INDEX crawl_tasks_queued_idx
    ON crawl_tasks (priority, scheduled_at, popularity DESC, id) WHERE status = 'queued';
CREATE INDEX crawl_tasks_segment_idx ON crawl_tasks (segment) WHERE segment IS NOT NULL;
CREATE UNIQUE INDEX crawl_tasks_url_hash_key ON crawl_tasks (url_hash);

-- One row: the hold on all tasks, and the scheduler's last tick.
CREATE TABLE task_control (
    singleton boolean DEFAULT true PRIMARY KEY,
    hold      text,
    ticked_at timestamptz,
    CONSTRAINT task_control_singleton_check CHECK (singleton),
    CONSTRAINT task_control_hold_check CHECK (hold IN ('paused', 'stopped'))
);
INSERT INTO task_control DEFAULT VALUES;

-- The audit trail: one attempt at one stage of a task. Deleted by age.
CREATE TABLE task_attempts (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id        bigint NOT NULL,
    domain_id      bigint NOT NULL,
    stage          text NOT NULL,
    lease          bigint NOT NULL,
    attempt        smallint NOT NULL,
    -- ok, unchanged, retry, failed, rested, lost, withdrawn
    outcome        text NOT NULL,
    error_kind     text,
    error_message  text,
    http_status    smallint,
    -- where redirects ended, if there were any
    final_url      text,
    proxy_id       bigint,
    worker_id      uuid,
    started_at     timestamptz,
    finished_at    timestamptz NOT NULL DEFAULT now(),
    duration_ms    integer,
    size           integer,
    segment        text,
    segment_offset bigint,
    segment_length integer,
    CONSTRAINT task_attempts_stage_check CHECK (stage IN ('download', 'parse'))
);
CREATE INDEX task_attempts_finished_idx ON task_attempts (finished_at);
CREATE INDEX task_attempts_segment_idx ON task_attempts (segment) WHERE segment IS NOT NULL;
CREATE INDEX task_attempts_task_idx ON task_attempts (task_id, id);

-- Errors of tasks and jobs. Deleted by age.
CREATE TABLE error_logs (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    crawl_task_id bigint,
    job_id        uuid,
    domain_id     bigint,
    stage         text NOT NULL,
    -- network, http, parse, validation, other
    error_type    text NOT NULL,
    error_kind    text NOT NULL,
    error_message text NOT NULL,
    -- the message without numbers and URLs, so that equal causes group
    message_key   text NOT NULL,
    stack_trace   text,
    url           text,
    occurred_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX error_logs_group_idx
    ON error_logs (domain_id, error_type, message_key, occurred_at);
CREATE INDEX error_logs_occurred_idx ON error_logs (occurred_at);
CREATE INDEX error_logs_task_idx
    ON error_logs (crawl_task_id, id) WHERE crawl_task_id IS NOT NULL;

-- Tasks that failed permanently, until a user retries or drops them.
CREATE TABLE dead_letters (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id       bigint NOT NULL,
    domain_id     bigint NOT NULL,
    url           text NOT NULL,
    stage         text NOT NULL,
    error_type    text NOT NULL,
    error_kind    text NOT NULL,
    error_message text NOT NULL,
    message_key   text NOT NULL,
    attempts      integer NOT NULL,
    died_at       timestamptz NOT NULL DEFAULT now(),
    resolved_at   timestamptz,
    resolution    text,
    CONSTRAINT dead_letters_resolution_check CHECK (resolution IN ('retried', 'dropped')),
    CONSTRAINT dead_letters_resolved_at_check
        CHECK ((resolution IS NULL) = (resolved_at IS NULL))
);
CREATE INDEX dead_letters_cause_idx
    ON dead_letters (error_kind, domain_id, id) WHERE resolved_at IS NULL;
CREATE UNIQUE INDEX dead_letters_open_key ON dead_letters (task_id) WHERE resolved_at IS NULL;
CREATE INDEX dead_letters_resolved_idx
    ON dead_letters (resolved_at) WHERE resolved_at IS NOT NULL;

-- Tasks of one domain that wait for a worker and must be sent to a broker; deleted when sent.
CREATE TABLE dispatch_outbox (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage      text NOT NULL,
    -- of priorities: 1 leaves first
    band       smallint NOT NULL,
    domain_id  bigint NOT NULL,
    task_ids   bigint[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dispatch_outbox_stage_check CHECK (stage IN ('crawl', 'parse')),
    CONSTRAINT dispatch_outbox_band_check CHECK (band BETWEEN 1 AND 3)
);
CREATE INDEX dispatch_outbox_order_idx ON dispatch_outbox (band, id);


-- products ----------------------------------------------------------------------------------------

-- The latest state of one product page. updated_at changes only when its content does.
CREATE TABLE products (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id        bigint NOT NULL REFERENCES domains (id),
    crawl_task_id    bigint REFERENCES crawl_tasks (id) ON DELETE SET NULL,
    url              text NOT NULL,
    url_hash         bytea NOT NULL,
    product_name     text NOT NULL,
    description      text,
    price            numeric(14, 4),
    list_price       numeric(14, 4),
    -- ISO 4217; NULL if unknown, never assumed
    currency         text,
    availability     text,
    rating           numeric(3, 2),
    review_count     bigint,
    brand            text,
    -- the path, joined with " > "
    category         text,
    sku              text,
    gtin             text,
    variants         jsonb NOT NULL DEFAULT '[]',
    content_hash     bytea NOT NULL,
    -- confidence and origin by field
    evidence         jsonb NOT NULL DEFAULT '{}',
    -- problems that validation found: a list of {field, rule, message}
    problems         jsonb NOT NULL DEFAULT '[]',
    metadata         jsonb NOT NULL DEFAULT '{}',
    parser           text NOT NULL,
    parser_version   text NOT NULL,
    language         text,
    tsv              tsvector NOT NULL DEFAULT '',
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    -- changes with every visit, and is in no index
    last_seen_at     timestamptz NOT NULL DEFAULT now(),
    price_changed_at timestamptz,
    -- when it came back from an archive file
    restored_at      timestamptz,
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

-- A product's offer from recorded_at on: one row per change.
CREATE TABLE price_history (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id   bigint NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    price        numeric(14, 4),
    list_price   numeric(14, 4),
    currency     text,
    availability text,
    recorded_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX price_history_product_idx ON price_history (product_id, recorded_at, id);
CREATE INDEX price_history_recorded_idx ON price_history (recorded_at);

-- What one version of one parser extracted from one archived page. Deleted by age.
CREATE TABLE extractions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id        bigint NOT NULL,
    product_id     bigint,
    domain_id      bigint NOT NULL,
    url            text NOT NULL,
    parser         text NOT NULL,
    parser_version text NOT NULL,
    role           text NOT NULL DEFAULT 'active',
    -- suspect: stored but flagged; incomplete: no product; failed: the parser raised
    outcome        text NOT NULL,
    confidence     double precision,
    fields         jsonb NOT NULL DEFAULT '{}',
    evidence       jsonb NOT NULL DEFAULT '{}',
    problems       jsonb NOT NULL DEFAULT '[]',
    error_message  text,
    segment        text,
    segment_offset bigint,
    segment_length integer,
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT extractions_role_check CHECK (role IN ('active', 'canary')),
    CONSTRAINT extractions_outcome_check
        CHECK (outcome IN ('ok', 'suspect', 'incomplete', 'failed'))
);
CREATE INDEX extractions_created_idx ON extractions (created_at);
CREATE INDEX extractions_domain_idx ON extractions (domain_id, role, id);
CREATE INDEX extractions_parser_idx ON extractions (parser, parser_version, id);
CREATE INDEX extractions_segment_idx ON extractions (segment) WHERE segment IS NOT NULL;
CREATE INDEX extractions_task_idx ON extractions (task_id, id);


-- images ------------------------------------------------------------------------------------------

-- One image of one product, and its download.
CREATE TABLE images (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id      bigint NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    image_url       text NOT NULL,
    url_hash        bytea NOT NULL,
    image_path      text,
    alt_text        text,
    image_type      text NOT NULL DEFAULT 'primary',
    position        integer NOT NULL DEFAULT 0,
    width           integer,
    height          integer,
    file_size       integer,
    content_hash    bytea,
    status          text NOT NULL DEFAULT 'pending',
    problem         text,
    attempts        smallint NOT NULL DEFAULT 0,
    -- also the end of the claim of the process that fetches it
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    fetched_at      timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
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

-- An image file, stored once for all products that show it. The row is inserted before the file is
-- written, and deleted after it.
CREATE TABLE image_files (
    content_hash bytea PRIMARY KEY,
    path         text NOT NULL,
    media_type   text NOT NULL,
    width        integer NOT NULL,
    height       integer NOT NULL,
    file_size    integer NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    -- the last time a process was about to refer to it; it is not deleted for a while after that
    touched_at   timestamptz NOT NULL DEFAULT now(),
    going_at     timestamptz,
    -- the storage that has a verified copy
    moved_to     text
);


-- parsers -----------------------------------------------------------------------------------------

-- How many pages of a domain a parser version could read on one day.
CREATE TABLE parse_rates (
    domain_id      bigint NOT NULL,
    parser         text NOT NULL,
    parser_version text NOT NULL,
    role           text NOT NULL,
    day            date NOT NULL,
    pages          integer NOT NULL DEFAULT 0,
    good           integer NOT NULL DEFAULT 0,
    PRIMARY KEY (domain_id, parser, parser_version, role, day)
) WITH (fillfactor = 70);

-- The active version of a parser, and the canary that runs beside it.
CREATE TABLE parser_rollouts (
    parser           text PRIMARY KEY,
    active_version   text NOT NULL,
    previous_version text,
    canary_version   text,
    canary_share     double precision,
    updated_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT parser_rollouts_canary_share_check
        CHECK (canary_share > 0 AND canary_share <= 1),
    CONSTRAINT parser_rollouts_canary_version_check
        CHECK ((canary_version IS NULL) = (canary_share IS NULL))
);


-- webhooks ----------------------------------------------------------------------------------------

-- Something that happened to a product or a domain: immutable, deleted by age.
CREATE TABLE catalog_events (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text NOT NULL,
    product_id  bigint,
    domain_id   bigint,
    payload     jsonb NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX catalog_events_kind_idx ON catalog_events (kind, id);
CREATE INDEX catalog_events_occurred_idx ON catalog_events (occurred_at);
CREATE INDEX catalog_events_product_idx ON catalog_events (product_id, id);

-- A URL that receives events.
CREATE TABLE webhooks (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url             text NOT NULL,
    -- encrypted with the installation's key
    secret          bytea NOT NULL,
    -- subscribed events; empty: all
    kinds           text[] NOT NULL DEFAULT '{}',
    domain_id       bigint,
    allow_private   boolean NOT NULL DEFAULT false,
    is_active       boolean NOT NULL DEFAULT true,
    disabled_reason text,
    -- failures in a row; after each one it waits, and is then tried with one message
    failures        integer NOT NULL DEFAULT 0,
    rests_until     timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX webhooks_url_key ON webhooks (url);

-- Messages that must leave, written in the transaction of the change they report. A message carries
-- ids, not state, so that a duplicate is harmless.
CREATE TABLE outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic           text NOT NULL,
    -- an event, a task or a document
    ref_id          bigint NOT NULL,
    -- the receiver, where there can be several: a webhook
    target_id       bigint,
    created_at      timestamptz NOT NULL DEFAULT now(),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    attempts        integer NOT NULL DEFAULT 0,
    last_error      text,
    sent_at         timestamptz,
    given_up_at     timestamptz,
    -- the service process that sends it now; released when that process is gone
    claimed_by      uuid
) WITH (fillfactor = 70);
CREATE INDEX outbox_claimed_idx ON outbox (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX outbox_done_idx
    ON outbox ((coalesce(sent_at, given_up_at)))
    WHERE coalesce(sent_at, given_up_at) IS NOT NULL;
CREATE INDEX outbox_target_idx ON outbox (topic, target_id, id);
CREATE INDEX outbox_unsent_idx
    ON outbox (topic, target_id, next_attempt_at, id)
    WHERE sent_at IS NULL AND given_up_at IS NULL;


-- index -------------------------------------------------------------------------------------------

-- The search engine's index of one kind of rows; while this row exists, changes are written to the
-- outbox. An engine may lose an index and create an empty one of the same name: hence the uuids.
CREATE TABLE search_indexes (
    kind            text PRIMARY KEY,
    -- the index that searches use; NULL until one is complete
    name            text,
    uuid            text,
    layout          integer,
    complete_since  timestamptz,
    -- the index that is being filled; all rows up to filled_to are in it
    building        text,
    building_uuid   text,
    building_layout integer,
    filled_to       bigint NOT NULL DEFAULT 0,
    -- the replaced index, until it is deleted
    old             text,
    -- when a worker last fed it: if long ago, the engine was switched off
    fed_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT search_indexes_kind_check CHECK (kind IN ('sections', 'products'))
) WITH (fillfactor = 50);

-- Rows that the search engine must read again; deleted when sent. The id is also the version of the
-- change: rows are changed under a lock, so that the later change has the higher id.
CREATE TABLE index_outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind            text NOT NULL,
    -- a document or a product
    ref_id          bigint NOT NULL,
    -- of a deleted document: its number of sections
    sections        integer,
    created_at      timestamptz NOT NULL DEFAULT now(),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    attempts        integer NOT NULL DEFAULT 0,
    last_error      text
);
CREATE INDEX index_outbox_due_idx ON index_outbox (kind, next_attempt_at, id);


-- access ------------------------------------------------------------------------------------------

-- An API key: its public half, and the hash of its secret half.
CREATE TABLE api_keys (
    id           text PRIMARY KEY,
    secret_hash  bytea NOT NULL,
    name         text NOT NULL,
    -- the owner of everything that is created with it
    user_id      uuid NOT NULL,
    scope        text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    -- accurate to some minutes: a write per request would cost more than the request
    last_used_at timestamptz,
    CONSTRAINT api_keys_scope_check CHECK (scope IN ('read', 'operate', 'admin')),
    CONSTRAINT api_keys_secret_hash_check CHECK (octet_length(secret_hash) = 32)
) WITH (fillfactor = 70);
CREATE INDEX api_keys_created_idx ON api_keys (created_at, id);
CREATE INDEX api_keys_user_idx ON api_keys (user_id);

-- The limits of an owner; NULL means no limit except that of the settings.
CREATE TABLE owner_quotas (
    user_id             uuid PRIMARY KEY,
    active_jobs         integer,
    pages_per_job       bigint,
    pages_per_day       bigint,
    requests_per_minute integer,
    updated_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT owner_quotas_amounts_check
        CHECK (active_jobs >= 0 AND pages_per_job >= 1 AND pages_per_day >= 0
               AND requests_per_minute >= 1)
);

-- Answered requests with their answers, written in the transaction of the request.
CREATE TABLE idempotency_keys (
    user_id      uuid NOT NULL,
    key          text NOT NULL,
    request_hash bytea NOT NULL,
    -- NULL only inside the transaction that makes the answer
    status       smallint,
    answer       bytea,
    -- an answer that holds a secret is stored encrypted
    sealed       boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_created_idx ON idempotency_keys (created_at);


-- metrics -----------------------------------------------------------------------------------------

-- Counters and histograms of all processes together. part is empty for a counter; else a bucket, or
-- the sum. Few rows, updated often.
CREATE TABLE metric_values (
    name   text NOT NULL,
    labels text[] NOT NULL,
    part   text NOT NULL,
    value  double precision NOT NULL,
    PRIMARY KEY (name, labels, part)
) WITH (fillfactor = 50);

-- A process that adds to the values, and the number of its last addition: a repetition is ignored.
CREATE TABLE metric_writers (
    id         uuid PRIMARY KEY,
    addition   bigint NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);


-- services ----------------------------------------------------------------------------------------

-- A process that runs background services, and the status of each.
CREATE TABLE service_processes (
    id         uuid PRIMARY KEY,
    command    text NOT NULL,
    host       text NOT NULL,
    pid        integer NOT NULL,
    -- its name on its machine, by which others there see whether it still runs
    process    text,
    started_at timestamptz NOT NULL DEFAULT now(),
    last_seen  timestamptz NOT NULL DEFAULT now(),
    services   jsonb NOT NULL
) WITH (fillfactor = 50);


-- No number is NaN or infinite: one of them ends the arithmetic of every reader.
DO $$
DECLARE
    number record;
BEGIN
    FOR number IN
        SELECT table_name AS of, column_name AS name
          FROM information_schema.columns
          JOIN information_schema.tables USING (table_schema, table_name)
         WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
           AND data_type IN ('real', 'double precision', 'numeric')
    LOOP
        EXECUTE format(
            'ALTER TABLE %I ADD CONSTRAINT %I CHECK (%I > ''-Infinity'' AND %I < ''Infinity'')',
            number.of, number.of || '_' || number.name || '_finite_check', number.name, number.name
        );
    END LOOP;
END
$$;
