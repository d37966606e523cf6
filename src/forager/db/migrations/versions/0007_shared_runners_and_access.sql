-- jobs --------------------------------------------------------------------------------------------
-- PostgreSQL has times that no client can read, such as infinity: such a row would break its lists.
ALTER TABLE crawl_jobs ADD CONSTRAINT crawl_jobs_run_after_check
    CHECK (run_after BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00') NOT VALID;
UPDATE crawl_jobs
   SET run_after = least(
           greatest(run_after, '0100-01-01 00:00:00+00'), '9999-01-01 00:00:00+00'
       )
 WHERE run_after NOT BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00';
ALTER TABLE crawl_jobs VALIDATE CONSTRAINT crawl_jobs_run_after_check;

CREATE INDEX crawl_jobs_host_idx ON crawl_jobs (host, created_at, id);

-- runners that were lost with the job in them, and whether it runs alone from now on
ALTER TABLE crawl_jobs
    ADD COLUMN runner_losses integer NOT NULL DEFAULT 0,
    ADD COLUMN own_runner boolean NOT NULL DEFAULT false;
CREATE INDEX crawl_jobs_own_runner_idx ON crawl_jobs (priority DESC, created_at, id, run_after)
    WHERE status = 'pending' AND own_runner;
-- why a worker claims no more jobs at the moment
ALTER TABLE workers ADD COLUMN brake text;

-- fetch -------------------------------------------------------------------------------------------
-- failure_count counts failures in a row; consecutive_failures is kept for the previous version
ALTER TABLE proxies ADD COLUMN total_failures bigint NOT NULL DEFAULT 0;
UPDATE proxies SET total_failures = failure_count, failure_count = consecutive_failures;

-- the delay under which the last slot was reserved: how far away it can be
ALTER TABLE domains
    ADD COLUMN slot_delay double precision NOT NULL DEFAULT 0,
    ADD CONSTRAINT domains_slot_delay_check CHECK (slot_delay >= 0),
    ADD CONSTRAINT domains_slot_delay_finite_check
        CHECK (slot_delay > '-infinity' AND slot_delay < 'infinity');
UPDATE domains SET slot_delay = 3600 WHERE next_slot_at > now();
-- when the block was written: later than now means that the clock was set back
ALTER TABLE domains ADD COLUMN blocked_at timestamptz;

-- tasks -------------------------------------------------------------------------------------------
CREATE INDEX crawl_tasks_failing_idx ON crawl_tasks (id) WHERE failing_since IS NOT NULL;

ALTER TABLE crawl_tasks ADD CONSTRAINT crawl_tasks_scheduled_at_check
    CHECK (scheduled_at BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00') NOT VALID;
UPDATE crawl_tasks
   SET scheduled_at = least(
           greatest(scheduled_at, '0100-01-01 00:00:00+00'), '9999-01-01 00:00:00+00'
       )
 WHERE scheduled_at NOT BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00';
ALTER TABLE crawl_tasks VALIDATE CONSTRAINT crawl_tasks_scheduled_at_check;
ALTER TABLE crawl_tasks ADD CONSTRAINT crawl_tasks_next_crawl_at_check
    CHECK (next_crawl_at BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00') NOT VALID;
UPDATE crawl_tasks
   SET next_crawl_at = least(
           greatest(next_crawl_at, '0100-01-01 00:00:00+00'), '9999-01-01 00:00:00+00'
       )
 WHERE next_crawl_at NOT BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00';
ALTER TABLE crawl_tasks VALIDATE CONSTRAINT crawl_tasks_next_crawl_at_check;

-- access ------------------------------------------------------------------------------------------
ALTER TABLE api_keys
    ADD COLUMN visibility text NOT NULL DEFAULT 'own',
    ADD CONSTRAINT api_keys_visibility_check CHECK (visibility IN ('everything', 'own'));
ALTER TABLE api_keys ADD CONSTRAINT api_keys_expires_at_check
    CHECK (expires_at BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00') NOT VALID;
UPDATE api_keys
   SET expires_at = least(
           greatest(expires_at, '0100-01-01 00:00:00+00'), '9999-01-01 00:00:00+00'
       )
 WHERE expires_at NOT BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00';
ALTER TABLE api_keys VALIDATE CONSTRAINT api_keys_expires_at_check;
UPDATE api_keys SET visibility = 'everything' WHERE scope = 'admin';

-- The owners that have a name. The others are known by the IDs in their rows alone.
CREATE TABLE owners (
    user_id uuid PRIMARY KEY,
    name    text NOT NULL,
    CONSTRAINT owners_name_key UNIQUE (name)
);

-- documents ---------------------------------------------------------------------------------------
ALTER TABLE sources ADD CONSTRAINT sources_next_refresh_at_check
    CHECK (next_refresh_at BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00') NOT VALID;
UPDATE sources
   SET next_refresh_at = least(
           greatest(next_refresh_at, '0100-01-01 00:00:00+00'), '9999-01-01 00:00:00+00'
       )
 WHERE next_refresh_at NOT BETWEEN '0100-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00';
ALTER TABLE sources VALIDATE CONSTRAINT sources_next_refresh_at_check;

-- metrics -----------------------------------------------------------------------------------------
-- Unfinished jobs of each owner and waiting tasks, once a minute. Deleted after two days.
CREATE TABLE backlog_samples (
    at      timestamptz,
    queue   text,
    owner   text,
    waiting bigint NOT NULL,
    CONSTRAINT backlog_samples_pkey PRIMARY KEY (at, queue, owner)
);

-- comments ---------------------------------------------------------------------------------------
-- The meaning of every table and column, as docs/reference/tables.md lists them. A new column
-- gets its comment in the migration that adds it.

COMMENT ON TABLE crawl_jobs IS
    'Jobs of all kinds. A payload is enough for one: INSERT INTO crawl_jobs (payload) VALUES (''{"url": "https://example.com/"}'').';
COMMENT ON COLUMN crawl_jobs.id IS 'Primary key.';
COMMENT ON COLUMN crawl_jobs.kind IS 'What runs it: crawl, or the name of another job kind.';
COMMENT ON COLUMN crawl_jobs.payload IS 'The request: URL, options and headers, as JSON.';
COMMENT ON COLUMN crawl_jobs.priority IS 'Higher runs first.';
COMMENT ON COLUMN crawl_jobs.status IS 'State of the lifecycle.';
COMMENT ON COLUMN crawl_jobs.worker_id IS 'The worker that runs it (`workers.id`).';
COMMENT ON COLUMN crawl_jobs.lease IS
    'Incremented by every claim; the holder of an older lease can write nothing.';
COMMENT ON COLUMN crawl_jobs.progress_percentage IS 'Progress from 0 to 100.';
COMMENT ON COLUMN crawl_jobs.created_at IS 'When the row was created.';
COMMENT ON COLUMN crawl_jobs.run_after IS
    'Not claimed before this time: the backoff of a retry, or the requested start.';
COMMENT ON COLUMN crawl_jobs.started_at IS 'The first claim.';
COMMENT ON COLUMN crawl_jobs.completed_at IS 'When it completed, failed or was cancelled.';
COMMENT ON COLUMN crawl_jobs.last_heartbeat IS 'The last sign of progress from its worker.';
COMMENT ON COLUMN crawl_jobs.retry_count IS 'Retries so far.';
COMMENT ON COLUMN crawl_jobs.max_retries IS 'Retries after the first attempt.';
COMMENT ON COLUMN crawl_jobs.error_message IS 'Why it failed, or the error of the last attempt.';
COMMENT ON COLUMN crawl_jobs.stop_reason IS
    'Why it ended, such as finished, max_pages or cancelled.';
COMMENT ON COLUMN crawl_jobs.source_id IS 'The source that it refreshes (`sources.id`).';
COMMENT ON COLUMN crawl_jobs.user_id IS 'The owner of the job; NULL: the installation.';
COMMENT ON COLUMN crawl_jobs.trace IS 'Where it was requested, as a W3C traceparent.';
COMMENT ON COLUMN crawl_jobs.host IS 'The host that it crawls.';
COMMENT ON COLUMN crawl_jobs.region IS
    'Region of that host''s domain: only workers there claim it.';
COMMENT ON COLUMN crawl_jobs.runner_losses IS
    'Runner processes that were lost with this job in them.';
COMMENT ON COLUMN crawl_jobs.own_runner IS 'Whether it runs alone in a process from now on.';

COMMENT ON TABLE job_events IS
    'The audit log of a job: one row per move of its lifecycle.';
COMMENT ON COLUMN job_events.id IS 'Primary key.';
COMMENT ON COLUMN job_events.job_id IS 'The job (`crawl_jobs.id`).';
COMMENT ON COLUMN job_events.at IS 'When it happened.';
COMMENT ON COLUMN job_events.move IS 'The move of the lifecycle, such as claim or complete.';
COMMENT ON COLUMN job_events.from_status IS 'State before the move; NULL for a new job.';
COMMENT ON COLUMN job_events.to_status IS 'State after the move.';
COMMENT ON COLUMN job_events.actor IS 'Who made the move: a worker, the watchdog or a user.';
COMMENT ON COLUMN job_events.reason IS 'Why, in words.';
COMMENT ON COLUMN job_events.lease IS 'The lease after the move.';

COMMENT ON TABLE workers IS
    'Worker processes that run, or died recently.';
COMMENT ON COLUMN workers.id IS 'Primary key.';
COMMENT ON COLUMN workers.host IS 'The host name of its machine.';
COMMENT ON COLUMN workers.pid IS 'Its process ID.';
COMMENT ON COLUMN workers.process IS
    'Identifies the process on its machine, so that others there notice its death.';
COMMENT ON COLUMN workers.version IS 'Version of Forager that it runs.';
COMMENT ON COLUMN workers.capacity IS 'Jobs or tasks that it runs at the same time.';
COMMENT ON COLUMN workers.started_at IS 'When it started.';
COMMENT ON COLUMN workers.last_seen IS 'Its last heartbeat.';
COMMENT ON COLUMN workers.state IS 'What it does: running, or stopping.';
COMMENT ON COLUMN workers.role IS 'What it runs: jobs or tasks.';
COMMENT ON COLUMN workers.region IS 'Its region; NULL: none.';
COMMENT ON COLUMN workers.note IS 'What keeps it from working, in words.';
COMMENT ON COLUMN workers.renders IS 'Whether the worker has a browser.';
COMMENT ON COLUMN workers.parsers IS
    'Of a worker for tasks: the versions of each parser that it has installed, by name.';
COMMENT ON COLUMN workers.brake IS 'Why it claims no more jobs at the moment.';

COMMENT ON TABLE domains IS
    'A host and its limits. NULL means: the crawl''s option, or the default of the settings.';
COMMENT ON COLUMN domains.id IS 'Primary key.';
COMMENT ON COLUMN domains.domain_name IS 'The host name.';
COMMENT ON COLUMN domains.base_url IS 'Scheme and host.';
COMMENT ON COLUMN domains.crawl_delay_seconds IS
    'Seconds between requests; NULL: the option of the crawl, then the settings.';
COMMENT ON COLUMN domains.max_concurrent_requests IS
    'Most connections at a time; NULL: the option of the crawl, then the settings.';
COMMENT ON COLUMN domains.per_proxy_only IS
    'Whether the limits apply to each (domain, proxy) pair only, not to the domain in total.';
COMMENT ON COLUMN domains.is_active IS 'Whether requests are sent to it at all.';
COMMENT ON COLUMN domains.region IS
    'Only workers of this region send requests to it; NULL: all workers.';
COMMENT ON COLUMN domains.created_at IS 'When the row was created.';
COMMENT ON COLUMN domains.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN domains.crawl_frequency IS
    'Interval of its tasks; NULL: the default of the settings.';
COMMENT ON COLUMN domains.adaptive IS
    'Whether the interval of its tasks follows how often their pages change.';
COMMENT ON COLUMN domains.min_frequency IS 'Shortest interval of adaptive scheduling.';
COMMENT ON COLUMN domains.max_frequency IS 'Longest interval of adaptive scheduling.';
COMMENT ON COLUMN domains.use_proxies IS
    'Whether its tasks use the pool of proxies; NULL: the default of the settings.';
COMMENT ON COLUMN domains.allow_private IS
    'Whether an operator allowed its tasks to reach private addresses.';
COMMENT ON COLUMN domains.currency IS 'The currency that its prices must have; NULL: any.';
COMMENT ON COLUMN domains.task_hold IS
    'paused or stopped: its tasks are not visited; NULL: they are.';
COMMENT ON COLUMN domains.next_slot_at IS
    'The budget: the end of the last reservation. Changes with every request.';
COMMENT ON COLUMN domains.blocked_until IS
    'No requests before this time, because the host asked for it (Retry-After).';
COMMENT ON COLUMN domains.slow_delay IS 'Extra delay in seconds after errors; it halves with time.';
COMMENT ON COLUMN domains.slowed_at IS
    'When the extra delay last grew, was confirmed by errors, or halved with time.';
COMMENT ON COLUMN domains.error_share IS
    'Moving average: the part of the last answers that were server errors or timeouts.';
COMMENT ON COLUMN domains.proxy_rate IS
    'Requests per second of each (domain, proxy) pair; NULL: the default of 5.';
COMMENT ON COLUMN domains.render IS
    'Whether pages are rendered: auto, always or never; NULL: auto.';
COMMENT ON COLUMN domains.render_urls IS 'Patterns of URLs that are always rendered.';
COMMENT ON COLUMN domains.slot_delay IS
    'The delay under which the last slot was reserved: how far away it can be.';
COMMENT ON COLUMN domains.blocked_at IS
    'When the block was written; later than now means that the clock was set back.';

COMMENT ON TABLE domain_permits IS
    'Connections that a runner may have open to a domain; they expire unless renewed.';
COMMENT ON COLUMN domain_permits.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN domain_permits.holder IS 'The runner that holds them.';
COMMENT ON COLUMN domain_permits.permits IS 'Connections that it may have open.';
COMMENT ON COLUMN domain_permits.asked IS
    'Connections that its crawl was started with: the limit of a domain without a limit.';
COMMENT ON COLUMN domain_permits.waiting IS 'Pages that wait for a slot or a connection.';
COMMENT ON COLUMN domain_permits.wanted IS 'Slots that were requested and not given.';
COMMENT ON COLUMN domain_permits.last_slot_at IS
    'Its last reservation; the runner whose reservation is oldest comes first.';
COMMENT ON COLUMN domain_permits.expires_at IS 'They expire unless renewed before this time.';

COMMENT ON TABLE robots_files IS
    'robots.txt as it was answered; the origin is scheme, host and port.';
COMMENT ON COLUMN robots_files.origin IS 'Scheme, host and port.';
COMMENT ON COLUMN robots_files.status IS
    'HTTP status of the response; 0: the host was unreachable.';
COMMENT ON COLUMN robots_files.body IS 'The file.';
COMMENT ON COLUMN robots_files.fetched_at IS 'When it was fetched.';
COMMENT ON COLUMN robots_files.expires_at IS 'When it is fetched again.';

COMMENT ON TABLE proxies IS
    'A proxy, its cost and its health.';
COMMENT ON COLUMN proxies.id IS 'Primary key.';
COMMENT ON COLUMN proxies.proxy_url IS 'Host name or address of the proxy.';
COMMENT ON COLUMN proxies.proxy_port IS 'Its port.';
COMMENT ON COLUMN proxies.proxy_protocol IS 'http, https or socks5.';
COMMENT ON COLUMN proxies.proxy_username IS 'User name; NULL: none.';
COMMENT ON COLUMN proxies.proxy_password IS 'Password, encrypted with the installation''s key.';
COMMENT ON COLUMN proxies.is_active IS 'Whether requests may use it.';
COMMENT ON COLUMN proxies.disabled_reason IS 'Why it is not active, in words.';
COMMENT ON COLUMN proxies.allow_private IS
    'Whether an operator allowed it to be at a private address.';
COMMENT ON COLUMN proxies.region IS 'Only workers of this region use it; NULL: all workers.';
COMMENT ON COLUMN proxies.cost_amount IS 'Its price per unit; NULL: unknown.';
COMMENT ON COLUMN proxies.cost_unit IS 'The unit of its price: request or GB.';
COMMENT ON COLUMN proxies.cost_currency IS 'ISO 4217 currency of its price.';
COMMENT ON COLUMN proxies.created_at IS 'When the row was created.';
COMMENT ON COLUMN proxies.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN proxies.failure_count IS 'Failures in a row.';
COMMENT ON COLUMN proxies.success_count IS 'All successful requests.';
COMMENT ON COLUMN proxies.consecutive_failures IS
    'Failures in a row, for a process of the previous version. Use failure_count.';
COMMENT ON COLUMN proxies.last_failure_reason IS 'The last failure in words.';
COMMENT ON COLUMN proxies.next_probe_at IS
    'Set while failures keep it off: when to probe whether it has recovered.';
COMMENT ON COLUMN proxies.probe_attempts IS
    'Probes since the last success of a real request; each one waits longer.';
COMMENT ON COLUMN proxies.last_used_at IS 'Its last request.';
COMMENT ON COLUMN proxies.last_success_at IS 'Its last successful request.';
COMMENT ON COLUMN proxies.last_failure_at IS 'Its last failed request.';
COMMENT ON COLUMN proxies.avg_response_time_ms IS
    'Moving average of its response time in milliseconds.';
COMMENT ON COLUMN proxies.total_failures IS 'All failed requests.';

COMMENT ON TABLE proxy_slots IS
    'The budget of one (domain, proxy) pair.';
COMMENT ON COLUMN proxy_slots.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN proxy_slots.proxy_id IS 'The proxy (`proxies.id`).';
COMMENT ON COLUMN proxy_slots.next_slot_at IS 'The end of the last reservation.';

COMMENT ON TABLE proxy_usage IS
    'Requests and bytes of one domain through one proxy on one day (UTC).';
COMMENT ON COLUMN proxy_usage.id IS 'Primary key.';
COMMENT ON COLUMN proxy_usage.day IS 'The day (UTC).';
COMMENT ON COLUMN proxy_usage.domain_name IS
    'The domain whose limits applied, or the host where none did.';
COMMENT ON COLUMN proxy_usage.proxy_id IS 'The proxy (`proxies.id`).';
COMMENT ON COLUMN proxy_usage.requests IS 'Requests on that day.';
COMMENT ON COLUMN proxy_usage.bytes IS 'Bytes received on that day.';
COMMENT ON COLUMN proxy_usage.updated_at IS 'When the row last changed.';

COMMENT ON TABLE archive_segments IS
    'A WARC segment. Its row is inserted before its bytes are written, and deleted after its file.';
COMMENT ON COLUMN archive_segments.name IS 'Its file name, without the storage.';
COMMENT ON COLUMN archive_segments.job_id IS
    'The job that wrote it; the segment outlives the job while it is referred to.';
COMMENT ON COLUMN archive_segments.worker_id IS 'The worker of tasks that wrote it.';
COMMENT ON COLUMN archive_segments.lease IS
    'The lease it was written under: the holder of a later lease does not write to it.';
COMMENT ON COLUMN archive_segments.bytes IS 'Its size in bytes.';
COMMENT ON COLUMN archive_segments.records IS 'Number of its records.';
COMMENT ON COLUMN archive_segments.created_at IS 'When the row was created.';
COMMENT ON COLUMN archive_segments.written_at IS 'The last write.';
COMMENT ON COLUMN archive_segments.closed_at IS
    'When it was completed; NULL: it is still written to.';
COMMENT ON COLUMN archive_segments.going_at IS
    'When deletion began: nothing refers to it and nothing may again.';
COMMENT ON COLUMN archive_segments.moved_to IS 'The storage that has a verified copy.';
COMMENT ON COLUMN archive_segments.keep_until IS
    'Merged into another segment; readers that found it earlier may read it until then.';

COMMENT ON TABLE crawl_states IS
    'One row per job, written with each of its commits: progress, checkpoint and ledger.';
COMMENT ON COLUMN crawl_states.job_id IS 'The job (`crawl_jobs.id`).';
COMMENT ON COLUMN crawl_states.total_processed IS 'URLs with an outcome.';
COMMENT ON COLUMN crawl_states.total_pending IS 'URLs that are still in the frontier.';
COMMENT ON COLUMN crawl_states.checkpoint IS
    'State of a job that is no crawl, as its kind stores it.';
COMMENT ON COLUMN crawl_states.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN crawl_states.current_depth IS
    'Depth of the crawl so far: links from the seed URLs.';
COMMENT ON COLUMN crawl_states.discovered IS
    'URLs found in scope; NULL for jobs that are not crawls and keep no ledger.';
COMMENT ON COLUMN crawl_states.fetched IS 'URLs that were fetched.';
COMMENT ON COLUMN crawl_states.unchanged IS 'URLs that the server confirmed as unchanged.';
COMMENT ON COLUMN crawl_states.duplicate IS 'URLs that lead to a page that is already known.';
COMMENT ON COLUMN crawl_states.failed IS 'URLs that failed.';
COMMENT ON COLUMN crawl_states.excluded IS 'URLs that a rule excluded.';
COMMENT ON COLUMN crawl_states.reasons IS
    'Counts by reason: of failed, excluded, duplicate and out-of-scope URLs, and of remarks.';
COMMENT ON COLUMN crawl_states.bytes_fetched IS 'Bytes received.';
COMMENT ON COLUMN crawl_states.seconds IS 'Running time in seconds, without pauses.';
COMMENT ON COLUMN crawl_states.next_seq IS 'Number of the next entry of the frontier.';
COMMENT ON COLUMN crawl_states.waits_for IS
    'What the crawl waits for, written also while nothing is committed.';
COMMENT ON COLUMN crawl_states.waits_until IS 'Until when it waits for that.';
COMMENT ON COLUMN crawl_states.pace IS 'Its recent rate in URLs per second.';
COMMENT ON COLUMN crawl_states.reported_at IS 'When it reported this.';

COMMENT ON TABLE crawl_frontier IS
    'URLs that a job still has to fetch.';
COMMENT ON COLUMN crawl_frontier.job_id IS 'The job (`crawl_jobs.id`).';
COMMENT ON COLUMN crawl_frontier.depth IS 'Links from the seed URLs.';
COMMENT ON COLUMN crawl_frontier.seq IS 'Order of discovery.';
COMMENT ON COLUMN crawl_frontier.url_hash IS 'The first 16 bytes of SHA-256 of the normalized URL.';
COMMENT ON COLUMN crawl_frontier.url IS 'The URL.';
COMMENT ON COLUMN crawl_frontier.parent IS 'The page that it was found on.';
COMMENT ON COLUMN crawl_frontier.via IS 'How it was found, such as link, sitemap or redirect.';
COMMENT ON COLUMN crawl_frontier.attempts IS 'Attempts so far.';
COMMENT ON COLUMN crawl_frontier.not_before IS
    'Not fetched before this time: the backoff of a retry.';
COMMENT ON COLUMN crawl_frontier.redirects IS 'Hashes of the URLs that redirected here, in order.';

COMMENT ON TABLE crawl_visited IS
    'URLs that a job has settled, with their outcomes.';
COMMENT ON COLUMN crawl_visited.job_id IS 'The job (`crawl_jobs.id`).';
COMMENT ON COLUMN crawl_visited.url_hash IS 'The first 16 bytes of SHA-256 of the normalized URL.';
COMMENT ON COLUMN crawl_visited.url IS 'The URL.';
COMMENT ON COLUMN crawl_visited.outcome IS 'fetched, unchanged, duplicate, failed or excluded.';
COMMENT ON COLUMN crawl_visited.reason IS 'The reason of the outcome, in one word.';
COMMENT ON COLUMN crawl_visited.detail IS 'The rule that excluded it, or the error it failed with.';
COMMENT ON COLUMN crawl_visited.duplicate_of IS 'The URL that it duplicates.';
COMMENT ON COLUMN crawl_visited.carried_over IS
    'It failed, but the generation lists the version of its base.';
COMMENT ON COLUMN crawl_visited.http_status IS 'HTTP status of the response.';
COMMENT ON COLUMN crawl_visited.depth IS 'Links from the seed URLs.';
COMMENT ON COLUMN crawl_visited.parent IS 'The page that it was found on.';
COMMENT ON COLUMN crawl_visited.via IS 'How it was found, such as link, sitemap or redirect.';
COMMENT ON COLUMN crawl_visited.attempts IS 'Attempts that it took.';
COMMENT ON COLUMN crawl_visited.content_type IS 'Media type of the response.';
COMMENT ON COLUMN crawl_visited.title IS 'Title of the page.';
COMMENT ON COLUMN crawl_visited.size IS 'Size of the body in bytes.';
COMMENT ON COLUMN crawl_visited.duration_ms IS 'Duration of the request in milliseconds.';
COMMENT ON COLUMN crawl_visited.settled_at IS 'When its outcome was committed.';
COMMENT ON COLUMN crawl_visited.content_hash IS 'Hash of the extracted text.';
COMMENT ON COLUMN crawl_visited.etag IS 'ETag of the response, sent with the next request.';
COMMENT ON COLUMN crawl_visited.last_modified IS
    'Last-Modified of the response, sent with the next request.';
COMMENT ON COLUMN crawl_visited.outlinks IS
    'In-scope links of the page, newline-separated, compressed with zstd.';
COMMENT ON COLUMN crawl_visited.segment IS
    'The archive segment with the stored response (`archive_segments.name`).';
COMMENT ON COLUMN crawl_visited.segment_offset IS
    'Where its record begins in the segment, in bytes.';
COMMENT ON COLUMN crawl_visited.segment_length IS 'Length of its record in the segment, in bytes.';
COMMENT ON COLUMN crawl_visited.rendering IS
    'Whether and why the page was rendered in a browser, in words; NULL where it needed none.';

COMMENT ON TABLE sources IS
    'What a user wants crawled as one unit.';
COMMENT ON COLUMN sources.id IS 'Name of the source, by default the host.';
COMMENT ON COLUMN sources.number IS 'The source as a lexeme in its search rows: § and this number.';
COMMENT ON COLUMN sources.base_url IS 'Where its crawls start.';
COMMENT ON COLUMN sources.user_id IS 'The owner of the source; NULL: the installation.';
COMMENT ON COLUMN sources.published_generation IS
    'The generation that readers see (`generations.id`).';
COMMENT ON COLUMN sources.generations IS 'Number of generations it ever had.';
COMMENT ON COLUMN sources.text_config IS
    'Its text search configuration; NULL until the first pages show their language.';
COMMENT ON COLUMN sources.keep_generations IS
    'Generations that are kept; NULL: the default of the settings.';
COMMENT ON COLUMN sources.max_shrink IS
    'Quality gate: the largest drop in pages that is published.';
COMMENT ON COLUMN sources.max_failed IS
    'Quality gate: the largest share of failed URLs that is published.';
COMMENT ON COLUMN sources.kind IS 'Kind of the job that refreshes it.';
COMMENT ON COLUMN sources.payload IS
    'Payload of the job that refreshes it: that of the last one that was published.';
COMMENT ON COLUMN sources.refresh_every IS 'Interval of its refreshes; NULL: none.';
COMMENT ON COLUMN sources.refresh_cron IS 'Cron expression of its refreshes; NULL: none.';
COMMENT ON COLUMN sources.next_refresh_at IS 'When it is refreshed next.';
COMMENT ON COLUMN sources.created_at IS 'When the row was created.';
COMMENT ON COLUMN sources.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN sources.deleted_at IS
    'When it was deleted: hidden from readers; the row is deleted after its generations.';
COMMENT ON COLUMN sources.repeated_blocks IS
    'Blocks that repeat on most pages, as extraction learned them from a sample; NULL until then.';
COMMENT ON COLUMN sources.declared_at IS
    'When its options were last declared; jobs that are older do not replace them.';

COMMENT ON TABLE generations IS
    'The pages that one job found. `retired` generations are complete but not visible: published earlier, or refused by the gate (published_at is NULL and note says why). `abandoned` ones are being deleted.';
COMMENT ON COLUMN generations.id IS 'Primary key.';
COMMENT ON COLUMN generations.source_id IS 'The source (`sources.id`).';
COMMENT ON COLUMN generations.number IS 'Counts from 1 in each source.';
COMMENT ON COLUMN generations.state IS 'building, published, retired or abandoned.';
COMMENT ON COLUMN generations.job_id IS
    'The job that built it; no foreign key, because a generation outlives its job.';
COMMENT ON COLUMN generations.base_id IS
    'The generation that was published when the job started, and that it is compared with.';
COMMENT ON COLUMN generations.pages IS 'Number of its pages.';
COMMENT ON COLUMN generations.added IS 'Pages that the base does not have.';
COMMENT ON COLUMN generations.changed IS 'Pages that differ from the base.';
COMMENT ON COLUMN generations.unchanged IS 'Pages that equal those of the base.';
COMMENT ON COLUMN generations.carried_over IS
    'Pages that failed temporarily, and are listed as they were in the base.';
COMMENT ON COLUMN generations.removed IS
    'Pages of the base that it does not have; known when the generation is complete.';
COMMENT ON COLUMN generations.created_at IS 'When the row was created.';
COMMENT ON COLUMN generations.published_at IS 'When it was published; NULL: never.';
COMMENT ON COLUMN generations.retired_at IS 'When another generation replaced it.';
COMMENT ON COLUMN generations.note IS 'Why it was not published, in words.';

COMMENT ON TABLE documents IS
    'One immutable version of one page of a source.';
COMMENT ON COLUMN documents.id IS 'Primary key.';
COMMENT ON COLUMN documents.source_id IS 'The source (`sources.id`).';
COMMENT ON COLUMN documents.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN documents.content_hash IS 'Hash of the extracted content.';
COMMENT ON COLUMN documents.extractor_version IS 'Version of the extraction that made it.';
COMMENT ON COLUMN documents.url IS 'The URL.';
COMMENT ON COLUMN documents.path IS
    'Path of the URL, in a collation where a prefix of a path is a range of the index.';
COMMENT ON COLUMN documents.title IS 'Title of the page.';
COMMENT ON COLUMN documents.language IS 'Language of the page.';
COMMENT ON COLUMN documents.created_at IS 'When the row was created.';
COMMENT ON COLUMN documents.simhash IS
    'SimHash of the text; NULL: too short to compare, or extracted by an earlier version.';

COMMENT ON TABLE generation_documents IS
    'The manifest: which document each page of a generation is.';
COMMENT ON COLUMN generation_documents.generation_id IS 'The generation (`generations.id`).';
COMMENT ON COLUMN generation_documents.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN generation_documents.document_id IS 'The document (`documents.id`).';
COMMENT ON COLUMN generation_documents.etag IS 'ETag of the response, sent with the next request.';
COMMENT ON COLUMN generation_documents.last_modified IS
    'Last-Modified of the response, sent with the next request.';
COMMENT ON COLUMN generation_documents.link_set IS 'Hash of its links (`link_sets.hash`).';
COMMENT ON COLUMN generation_documents.segment IS
    'The archive segment with the stored response (`archive_segments.name`).';
COMMENT ON COLUMN generation_documents.segment_offset IS
    'Where its record begins in the segment, in bytes.';
COMMENT ON COLUMN generation_documents.segment_length IS
    'Length of its record in the segment, in bytes.';
COMMENT ON COLUMN generation_documents.fetched_at IS
    'When the server last sent or confirmed this version.';
COMMENT ON COLUMN generation_documents.carried_since IS
    'Of a page that is carried over: since when it fails.';
COMMENT ON COLUMN generation_documents.carried_reason IS
    'Of a page that is carried over: why it fails.';
COMMENT ON COLUMN generation_documents.carried_times IS
    'Of a page that is carried over: in how many refreshes in a row it failed.';

COMMENT ON TABLE link_sets IS
    'The links of a page, shared by all pages and generations of a source with the same links.';
COMMENT ON COLUMN link_sets.source_id IS 'The source (`sources.id`).';
COMMENT ON COLUMN link_sets.hash IS 'Hash of the links.';
COMMENT ON COLUMN link_sets.links IS 'In-scope links, newline-separated, compressed with zstd.';

COMMENT ON TABLE sections IS
    'A heading with its text; positions count from 0 in the order of the page.';
COMMENT ON COLUMN sections.id IS 'Primary key.';
COMMENT ON COLUMN sections.document_id IS 'The document (`documents.id`).';
COMMENT ON COLUMN sections.parent_id IS 'The section that contains it (`sections.id`); NULL: none.';
COMMENT ON COLUMN sections.heading IS 'The heading.';
COMMENT ON COLUMN sections.level IS 'Level of the heading: 1 to 6.';
COMMENT ON COLUMN sections.anchor IS 'The fragment of a URL that leads to it.';
COMMENT ON COLUMN sections.content IS 'Its text as markdown, without that of its subsections.';
COMMENT ON COLUMN sections.position IS 'Its place on the page, counted from 0.';

COMMENT ON TABLE section_search IS
    'What search ranks: narrow, so that a query can read many rows. Both vectors hold the source as a lexeme, so that the index alone finds the rows of one source.';
COMMENT ON COLUMN section_search.document_id IS 'The document (`documents.id`).';
COMMENT ON COLUMN section_search.position IS
    'The section''s place on the page (`sections.position`).';
COMMENT ON COLUMN section_search.head_tsv IS
    'Words of the heading and title, with the source as a lexeme.';
COMMENT ON COLUMN section_search.tsv IS 'Words of the text, with the source as a lexeme.';

COMMENT ON VIEW documents_active IS
    'The documents of the published generations.';
COMMENT ON COLUMN documents_active.source_id IS 'The source (`sources.id`).';
COMMENT ON COLUMN documents_active.generation_id IS 'The generation (`generations.id`).';
COMMENT ON COLUMN documents_active.id IS 'The document (`documents.id`).';
COMMENT ON COLUMN documents_active.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN documents_active.url IS 'The URL.';
COMMENT ON COLUMN documents_active.path IS
    'Path of the URL, in a collation where a prefix of a path is a range of the index.';
COMMENT ON COLUMN documents_active.title IS 'Title of the page.';
COMMENT ON COLUMN documents_active.language IS 'Language of the page.';
COMMENT ON COLUMN documents_active.content_hash IS 'Hash of the extracted content.';
COMMENT ON COLUMN documents_active.extractor_version IS 'Version of the extraction that made it.';
COMMENT ON COLUMN documents_active.etag IS 'ETag of the response, sent with the next request.';
COMMENT ON COLUMN documents_active.last_modified IS
    'Last-Modified of the response, sent with the next request.';
COMMENT ON COLUMN documents_active.link_set IS 'Hash of its links (`link_sets.hash`).';
COMMENT ON COLUMN documents_active.segment IS
    'The archive segment with the stored response (`archive_segments.name`).';
COMMENT ON COLUMN documents_active.segment_offset IS
    'Where its record begins in the segment, in bytes.';
COMMENT ON COLUMN documents_active.segment_length IS
    'Length of its record in the segment, in bytes.';
COMMENT ON COLUMN documents_active.fetched_at IS
    'When the server last sent or confirmed this version.';

COMMENT ON VIEW sections_active IS
    'The sections of the published generations.';
COMMENT ON COLUMN sections_active.source_id IS 'The source (`sources.id`).';
COMMENT ON COLUMN sections_active.generation_id IS 'The generation (`generations.id`).';
COMMENT ON COLUMN sections_active.url IS 'The URL.';
COMMENT ON COLUMN sections_active.path IS
    'Path of the URL, in a collation where a prefix of a path is a range of the index.';
COMMENT ON COLUMN sections_active.title IS 'Title of the page.';
COMMENT ON COLUMN sections_active.language IS 'Language of the page.';
COMMENT ON COLUMN sections_active.id IS 'The section (`sections.id`).';
COMMENT ON COLUMN sections_active.document_id IS 'The document (`documents.id`).';
COMMENT ON COLUMN sections_active.parent_id IS
    'The section that contains it (`sections.id`); NULL: none.';
COMMENT ON COLUMN sections_active.heading IS 'The heading.';
COMMENT ON COLUMN sections_active.level IS 'Level of the heading: 1 to 6.';
COMMENT ON COLUMN sections_active.anchor IS 'The fragment of a URL that leads to it.';
COMMENT ON COLUMN sections_active.content IS
    'Its text as markdown, without that of its subsections.';
COMMENT ON COLUMN sections_active.position IS 'Its place on the page, counted from 0.';

COMMENT ON TABLE crawl_tasks IS
    'One URL that is kept fresh. A worker holds a task by (worker_id, lease): the lease is incremented by every claim and every revocation, and the holder of an older one can write nothing. Each status has a small partial index instead of one index over all rows.';
COMMENT ON COLUMN crawl_tasks.id IS 'Primary key.';
COMMENT ON COLUMN crawl_tasks.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN crawl_tasks.url IS 'The URL.';
COMMENT ON COLUMN crawl_tasks.url_hash IS 'SHA-256 of the normalized URL.';
COMMENT ON COLUMN crawl_tasks.status IS 'State of the lifecycle.';
COMMENT ON COLUMN crawl_tasks.priority IS
    '1 is highest. The API, the command line and the library use 10 minus this number.';
COMMENT ON COLUMN crawl_tasks.popularity IS
    'Popularity as requested; more popular pages come first within a priority.';
COMMENT ON COLUMN crawl_tasks.scheduled_at IS 'When it may start; includes the backoff of a retry.';
COMMENT ON COLUMN crawl_tasks.started_at IS
    'Start of this round; of the last one while the task waits.';
COMMENT ON COLUMN crawl_tasks.completed_at IS
    'End of this round; of the last one while the task waits.';
COMMENT ON COLUMN crawl_tasks.retry_count IS 'Retries in this round.';
COMMENT ON COLUMN crawl_tasks.max_retries IS 'Retries after the first attempt of a round.';
COMMENT ON COLUMN crawl_tasks.error_kind IS 'The kind of error, such as timeout or http_client.';
COMMENT ON COLUMN crawl_tasks.error_message IS 'The error in words.';
COMMENT ON COLUMN crawl_tasks.crawl_frequency IS
    'Interval as requested; NULL: the domain''s, then the default of the settings.';
COMMENT ON COLUMN crawl_tasks.adapted_frequency IS 'The current interval of adaptive scheduling.';
COMMENT ON COLUMN crawl_tasks.next_crawl_at IS 'When the next round is due.';
COMMENT ON COLUMN crawl_tasks.hold IS 'paused or stopped: it is not visited; NULL: it is.';
COMMENT ON COLUMN crawl_tasks.lease IS
    'Incremented by every claim and every revocation; the holder of an older lease can write nothing.';
COMMENT ON COLUMN crawl_tasks.worker_id IS 'The worker that holds it (`workers.id`).';
COMMENT ON COLUMN crawl_tasks.etag IS 'ETag of the response, sent with the next request.';
COMMENT ON COLUMN crawl_tasks.last_modified IS
    'Last-Modified of the response, sent with the next request.';
COMMENT ON COLUMN crawl_tasks.parser_version IS
    'The parser version that read the archived page: validators are sent while it is current.';
COMMENT ON COLUMN crawl_tasks.segment IS
    'The archive segment with the stored response (`archive_segments.name`).';
COMMENT ON COLUMN crawl_tasks.segment_offset IS 'Where its record begins in the segment, in bytes.';
COMMENT ON COLUMN crawl_tasks.segment_length IS 'Length of its record in the segment, in bytes.';
COMMENT ON COLUMN crawl_tasks.found_by IS
    'What started tracking it: a user, a file, or the crawl that found it.';
COMMENT ON COLUMN crawl_tasks.created_at IS 'When the row was created.';
COMMENT ON COLUMN crawl_tasks.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN crawl_tasks.failed_visits IS 'Visits in a row whose last retry failed.';
COMMENT ON COLUMN crawl_tasks.failing_since IS
    'Since when visits fail; NULL: the last visit succeeded.';
COMMENT ON COLUMN crawl_tasks.render IS
    'Rendering as requested: auto, always or never; NULL: the domain''s.';
COMMENT ON COLUMN crawl_tasks.needs_browser IS
    'What its visits have shown with auto: whether the page must be rendered.';

COMMENT ON TABLE task_control IS
    'One row: the hold on all tasks, and the scheduler''s last tick.';
COMMENT ON COLUMN task_control.singleton IS 'Always true: the table has one row.';
COMMENT ON COLUMN task_control.hold IS 'paused or stopped: no task is visited; NULL: they are.';
COMMENT ON COLUMN task_control.ticked_at IS 'The scheduler''s last tick.';

COMMENT ON TABLE task_attempts IS
    'The audit trail: one attempt at one stage of a task. Deleted by age.';
COMMENT ON COLUMN task_attempts.id IS 'Primary key.';
COMMENT ON COLUMN task_attempts.task_id IS 'The task (`crawl_tasks.id`).';
COMMENT ON COLUMN task_attempts.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN task_attempts.stage IS 'download or parse.';
COMMENT ON COLUMN task_attempts.lease IS 'The lease that it was made under.';
COMMENT ON COLUMN task_attempts.attempt IS 'Its number within the round.';
COMMENT ON COLUMN task_attempts.outcome IS
    'ok, unchanged, retry, failed, rested, lost or withdrawn.';
COMMENT ON COLUMN task_attempts.error_kind IS 'The kind of error, such as timeout or http_client.';
COMMENT ON COLUMN task_attempts.error_message IS 'The error in words.';
COMMENT ON COLUMN task_attempts.http_status IS 'HTTP status of the response.';
COMMENT ON COLUMN task_attempts.final_url IS 'Where redirects ended, if there were any.';
COMMENT ON COLUMN task_attempts.proxy_id IS 'The proxy (`proxies.id`).';
COMMENT ON COLUMN task_attempts.worker_id IS 'The worker that made it (`workers.id`).';
COMMENT ON COLUMN task_attempts.started_at IS 'When it started.';
COMMENT ON COLUMN task_attempts.finished_at IS 'When it ended.';
COMMENT ON COLUMN task_attempts.duration_ms IS 'Its duration in milliseconds.';
COMMENT ON COLUMN task_attempts.size IS 'Size of the body in bytes.';
COMMENT ON COLUMN task_attempts.segment IS
    'The archive segment with the stored response (`archive_segments.name`).';
COMMENT ON COLUMN task_attempts.segment_offset IS
    'Where its record begins in the segment, in bytes.';
COMMENT ON COLUMN task_attempts.segment_length IS 'Length of its record in the segment, in bytes.';

COMMENT ON TABLE error_logs IS
    'Errors of tasks and jobs. Deleted by age.';
COMMENT ON COLUMN error_logs.id IS 'Primary key.';
COMMENT ON COLUMN error_logs.crawl_task_id IS
    'The task (`crawl_tasks.id`); NULL for an error of a job.';
COMMENT ON COLUMN error_logs.job_id IS 'The job (`crawl_jobs.id`); NULL for an error of a task.';
COMMENT ON COLUMN error_logs.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN error_logs.stage IS 'download or parse; NULL for an error of a job.';
COMMENT ON COLUMN error_logs.error_type IS 'network, http, parse, validation or other.';
COMMENT ON COLUMN error_logs.error_kind IS 'The kind of error, such as timeout or http_client.';
COMMENT ON COLUMN error_logs.error_message IS 'The error in words.';
COMMENT ON COLUMN error_logs.message_key IS
    'The message without numbers and URLs, so that equal causes group.';
COMMENT ON COLUMN error_logs.stack_trace IS 'Where it happened in the code, for bugs of Forager.';
COMMENT ON COLUMN error_logs.url IS 'The URL.';
COMMENT ON COLUMN error_logs.occurred_at IS 'When it happened.';

COMMENT ON TABLE dead_letters IS
    'Tasks that failed permanently, until a user retries or drops them.';
COMMENT ON COLUMN dead_letters.id IS 'Primary key.';
COMMENT ON COLUMN dead_letters.task_id IS 'The task (`crawl_tasks.id`).';
COMMENT ON COLUMN dead_letters.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN dead_letters.url IS 'The URL.';
COMMENT ON COLUMN dead_letters.stage IS 'The stage that failed: download or parse.';
COMMENT ON COLUMN dead_letters.error_type IS 'network, http, parse, validation or other.';
COMMENT ON COLUMN dead_letters.error_kind IS 'The kind of error, such as timeout or http_client.';
COMMENT ON COLUMN dead_letters.error_message IS 'The error in words.';
COMMENT ON COLUMN dead_letters.message_key IS
    'The message without numbers and URLs, so that equal causes group.';
COMMENT ON COLUMN dead_letters.attempts IS 'Attempts of the last round.';
COMMENT ON COLUMN dead_letters.died_at IS 'When it failed permanently.';
COMMENT ON COLUMN dead_letters.resolved_at IS 'When a user retried or dropped it; NULL: not yet.';
COMMENT ON COLUMN dead_letters.resolution IS 'retried or dropped.';

COMMENT ON TABLE products IS
    'The latest state of one product page. updated_at changes only when its content does.';
COMMENT ON COLUMN products.id IS 'Primary key.';
COMMENT ON COLUMN products.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN products.crawl_task_id IS 'The task that keeps it fresh (`crawl_tasks.id`).';
COMMENT ON COLUMN products.url IS 'The URL.';
COMMENT ON COLUMN products.url_hash IS 'SHA-256 of the normalized URL.';
COMMENT ON COLUMN products.product_name IS 'Name of the product.';
COMMENT ON COLUMN products.description IS 'Description of the product.';
COMMENT ON COLUMN products.price IS 'The current price.';
COMMENT ON COLUMN products.list_price IS 'The price before a reduction; NULL: none.';
COMMENT ON COLUMN products.currency IS 'ISO 4217; NULL if unknown, never assumed.';
COMMENT ON COLUMN products.availability IS 'Availability, such as in_stock or out_of_stock.';
COMMENT ON COLUMN products.rating IS 'Average rating.';
COMMENT ON COLUMN products.review_count IS 'Number of reviews.';
COMMENT ON COLUMN products.brand IS 'Brand.';
COMMENT ON COLUMN products.category IS 'Path of the category, joined with " > ".';
COMMENT ON COLUMN products.sku IS 'The shop''s number of the product.';
COMMENT ON COLUMN products.gtin IS 'GTIN (EAN, UPC or ISBN).';
COMMENT ON COLUMN products.variants IS 'Variants with their offers, as JSON.';
COMMENT ON COLUMN products.content_hash IS
    'Hash of the content: a visit that changes nothing writes nothing.';
COMMENT ON COLUMN products.evidence IS 'Confidence and origin by field.';
COMMENT ON COLUMN products.problems IS
    'Problems that validation found: a list of {field, rule, message}.';
COMMENT ON COLUMN products.metadata IS 'Further fields of the parser.';
COMMENT ON COLUMN products.parser IS 'The parser that extracted it.';
COMMENT ON COLUMN products.parser_version IS 'Version of that parser.';
COMMENT ON COLUMN products.language IS 'Language of the page.';
COMMENT ON COLUMN products.tsv IS 'Words for the text search.';
COMMENT ON COLUMN products.created_at IS 'When the row was created.';
COMMENT ON COLUMN products.updated_at IS 'When the content last changed.';
COMMENT ON COLUMN products.last_seen_at IS 'The last visit that found it.';
COMMENT ON COLUMN products.price_changed_at IS 'When the price last changed.';
COMMENT ON COLUMN products.restored_at IS 'When it was restored from an archive file.';

COMMENT ON TABLE price_history IS
    'A product''s offer from recorded_at on: one row per change.';
COMMENT ON COLUMN price_history.id IS 'Primary key.';
COMMENT ON COLUMN price_history.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN price_history.price IS 'The price.';
COMMENT ON COLUMN price_history.list_price IS 'The price before a reduction; NULL: none.';
COMMENT ON COLUMN price_history.currency IS 'ISO 4217 currency of the price.';
COMMENT ON COLUMN price_history.availability IS 'Availability, such as in_stock or out_of_stock.';
COMMENT ON COLUMN price_history.recorded_at IS 'When this offer began.';

COMMENT ON TABLE extractions IS
    'What one version of one parser extracted from one archived page. Deleted by age.';
COMMENT ON COLUMN extractions.id IS 'Primary key.';
COMMENT ON COLUMN extractions.task_id IS 'The task (`crawl_tasks.id`).';
COMMENT ON COLUMN extractions.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN extractions.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN extractions.url IS 'The URL.';
COMMENT ON COLUMN extractions.parser IS 'Name of the parser.';
COMMENT ON COLUMN extractions.parser_version IS 'Version of the parser.';
COMMENT ON COLUMN extractions.role IS 'active, or canary for a version that is tried beside it.';
COMMENT ON COLUMN extractions.outcome IS
    'ok; suspect: stored but flagged; incomplete: no product; failed: the parser raised an error.';
COMMENT ON COLUMN extractions.confidence IS 'Confidence from 0 to 1.';
COMMENT ON COLUMN extractions.fields IS 'The extracted fields.';
COMMENT ON COLUMN extractions.evidence IS 'Confidence and origin by field.';
COMMENT ON COLUMN extractions.problems IS
    'Problems that validation found: a list of {field, rule, message}.';
COMMENT ON COLUMN extractions.error_message IS 'The error in words.';
COMMENT ON COLUMN extractions.segment IS
    'The archive segment with the stored response (`archive_segments.name`).';
COMMENT ON COLUMN extractions.segment_offset IS 'Where its record begins in the segment, in bytes.';
COMMENT ON COLUMN extractions.segment_length IS 'Length of its record in the segment, in bytes.';
COMMENT ON COLUMN extractions.created_at IS 'When the row was created.';

COMMENT ON TABLE images IS
    'One image of one product, and its download.';
COMMENT ON COLUMN images.id IS 'Primary key.';
COMMENT ON COLUMN images.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN images.image_url IS 'URL of the image.';
COMMENT ON COLUMN images.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN images.image_path IS
    'Path of its file in the image storage; NULL: not downloaded.';
COMMENT ON COLUMN images.alt_text IS 'Alternative text on the page.';
COMMENT ON COLUMN images.image_type IS 'primary, gallery or thumbnail.';
COMMENT ON COLUMN images.position IS 'Its place among the images of the product.';
COMMENT ON COLUMN images.width IS 'Width in pixels.';
COMMENT ON COLUMN images.height IS 'Height in pixels.';
COMMENT ON COLUMN images.file_size IS 'Size of the file in bytes.';
COMMENT ON COLUMN images.content_hash IS 'Hash of the file (`image_files.content_hash`).';
COMMENT ON COLUMN images.status IS 'State of the download.';
COMMENT ON COLUMN images.problem IS 'Why the download failed, in words.';
COMMENT ON COLUMN images.attempts IS 'Attempts at the download.';
COMMENT ON COLUMN images.next_attempt_at IS
    'When it is tried next; also the end of the claim of the process that fetches it.';
COMMENT ON COLUMN images.fetched_at IS 'When it was downloaded.';
COMMENT ON COLUMN images.created_at IS 'When the row was created.';
COMMENT ON COLUMN images.pending_since IS 'Since when it waits for its download.';

COMMENT ON TABLE image_files IS
    'An image file, stored once for all products that show it. The row is inserted before the file is written, and deleted after it.';
COMMENT ON COLUMN image_files.content_hash IS 'SHA-256 of the file.';
COMMENT ON COLUMN image_files.path IS 'Path in the image storage.';
COMMENT ON COLUMN image_files.media_type IS 'Media type.';
COMMENT ON COLUMN image_files.width IS 'Width in pixels.';
COMMENT ON COLUMN image_files.height IS 'Height in pixels.';
COMMENT ON COLUMN image_files.file_size IS 'Size in bytes.';
COMMENT ON COLUMN image_files.created_at IS 'When the row was created.';
COMMENT ON COLUMN image_files.touched_at IS
    'The last time a process was about to refer to it; it is not deleted for a while after that.';
COMMENT ON COLUMN image_files.going_at IS 'When deletion began.';
COMMENT ON COLUMN image_files.moved_to IS 'The storage that has a verified copy.';

COMMENT ON TABLE parse_rates IS
    'How many pages of a domain a parser version could read on one day.';
COMMENT ON COLUMN parse_rates.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN parse_rates.parser IS 'Name of the parser.';
COMMENT ON COLUMN parse_rates.parser_version IS 'Version of the parser.';
COMMENT ON COLUMN parse_rates.role IS 'active, or canary for a version that is tried beside it.';
COMMENT ON COLUMN parse_rates.day IS 'The day (UTC).';
COMMENT ON COLUMN parse_rates.pages IS 'Pages that it was given.';
COMMENT ON COLUMN parse_rates.good IS 'Pages that it read without errors.';

COMMENT ON TABLE parser_rollouts IS
    'The active version of a parser, and the canary that runs beside it.';
COMMENT ON COLUMN parser_rollouts.parser IS 'Name of the parser.';
COMMENT ON COLUMN parser_rollouts.active_version IS 'The version that reads pages.';
COMMENT ON COLUMN parser_rollouts.previous_version IS 'The version before it, for a rollback.';
COMMENT ON COLUMN parser_rollouts.canary_version IS
    'The version that is tried beside it; NULL: none.';
COMMENT ON COLUMN parser_rollouts.canary_share IS 'Share of the pages that the canary reads.';
COMMENT ON COLUMN parser_rollouts.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN parser_rollouts.bypassed_until IS
    'Until when workers read its pages generically, because it kept failing.';
COMMENT ON COLUMN parser_rollouts.bypass_reason IS 'Why it is bypassed.';

COMMENT ON TABLE catalog_events IS
    'Something that happened to a product or a domain: immutable, deleted by age.';
COMMENT ON COLUMN catalog_events.id IS 'Primary key.';
COMMENT ON COLUMN catalog_events.kind IS 'Kind of event, such as price.changed.';
COMMENT ON COLUMN catalog_events.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN catalog_events.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN catalog_events.payload IS 'What changed, as JSON.';
COMMENT ON COLUMN catalog_events.occurred_at IS 'When it happened.';

COMMENT ON TABLE webhooks IS
    'A URL that receives events.';
COMMENT ON COLUMN webhooks.id IS 'Primary key.';
COMMENT ON COLUMN webhooks.url IS 'Where events are sent: a URL, or mailto: and an address.';
COMMENT ON COLUMN webhooks.secret IS
    'The secret that signs messages, encrypted with the installation''s key.';
COMMENT ON COLUMN webhooks.kinds IS 'Subscribed events; empty: all.';
COMMENT ON COLUMN webhooks.domain_id IS 'Only events of this domain; NULL: all.';
COMMENT ON COLUMN webhooks.allow_private IS 'Whether it may be at a private address.';
COMMENT ON COLUMN webhooks.is_active IS 'Whether messages are sent to it.';
COMMENT ON COLUMN webhooks.disabled_reason IS 'Why it is not active, in words.';
COMMENT ON COLUMN webhooks.failures IS
    'Failures in a row; after each one it waits, and is then tried with one message.';
COMMENT ON COLUMN webhooks.rests_until IS 'No message before this time, after a failure.';
COMMENT ON COLUMN webhooks.created_at IS 'When the row was created.';
COMMENT ON COLUMN webhooks.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN webhooks.ordered IS
    'Whether events of one product are delivered one after the other.';

COMMENT ON TABLE outbox IS
    'Messages that must leave, written in the transaction of the change they report. A message carries ids, not state, so that a duplicate is harmless.';
COMMENT ON COLUMN outbox.id IS 'Primary key.';
COMMENT ON COLUMN outbox.topic IS 'The receiver: webhooks, crawl, parse, sections or products.';
COMMENT ON COLUMN outbox.ref_id IS 'What the message is about: an event, a task or a document.';
COMMENT ON COLUMN outbox.lane IS
    'Messages of one lane are sent independently of the others: a webhook, or a priority.';
COMMENT ON COLUMN outbox.created_at IS 'When the row was created.';
COMMENT ON COLUMN outbox.due_at IS 'When it is sent, or tried again.';
COMMENT ON COLUMN outbox.attempts IS 'Attempts so far.';
COMMENT ON COLUMN outbox.last_error IS 'The error of the last attempt.';
COMMENT ON COLUMN outbox.sent_at IS 'When it was sent; NULL: not yet.';
COMMENT ON COLUMN outbox.given_up_at IS 'When it was given up; NULL: not.';
COMMENT ON COLUMN outbox.claimed_by IS
    'The service process that sends it now; released when that process is gone.';
COMMENT ON COLUMN outbox.payload IS
    'IDs of tasks, or the number of sections that a deleted document had.';
COMMENT ON COLUMN outbox.order_key IS
    'Messages of a lane with the same key are sent one after the other.';
COMMENT ON COLUMN outbox.responses IS
    'The responses to the last attempts of a webhook message, newest first; NULL: none recorded.';

COMMENT ON TABLE search_indexes IS
    'The search engine''s index of one kind of rows; while this row exists, changes are written to the outbox. An engine may lose an index and create an empty one of the same name: hence the uuids.';
COMMENT ON COLUMN search_indexes.kind IS 'What it contains: sections or products.';
COMMENT ON COLUMN search_indexes.name IS 'The index that searches use; NULL until one is complete.';
COMMENT ON COLUMN search_indexes.uuid IS 'The engine''s ID of that index.';
COMMENT ON COLUMN search_indexes.layout IS 'Version of the mapping of that index.';
COMMENT ON COLUMN search_indexes.complete_since IS 'When that index became complete.';
COMMENT ON COLUMN search_indexes.building IS 'The index that is being filled; NULL: none.';
COMMENT ON COLUMN search_indexes.building_uuid IS
    'The engine''s ID of the index that is being filled.';
COMMENT ON COLUMN search_indexes.building_layout IS
    'Version of the mapping of the index that is being filled.';
COMMENT ON COLUMN search_indexes.filled_to IS
    'All rows up to this ID are in the index that is being filled.';
COMMENT ON COLUMN search_indexes.old IS 'The replaced index, until it is deleted.';
COMMENT ON COLUMN search_indexes.fed_at IS
    'When a worker last wrote to it: if long ago, the engine was switched off.';

COMMENT ON TABLE api_keys IS
    'An API key: its public half, and the hash of its secret half.';
COMMENT ON COLUMN api_keys.id IS 'The public half of the key.';
COMMENT ON COLUMN api_keys.secret_hash IS 'Hash of the secret half.';
COMMENT ON COLUMN api_keys.name IS 'Who or what uses it.';
COMMENT ON COLUMN api_keys.user_id IS 'The owner of everything that is created with it.';
COMMENT ON COLUMN api_keys.scope IS 'read, operate or admin.';
COMMENT ON COLUMN api_keys.created_at IS 'When the row was created.';
COMMENT ON COLUMN api_keys.expires_at IS 'When it expires; NULL: never.';
COMMENT ON COLUMN api_keys.revoked_at IS 'When it was revoked; NULL: not.';
COMMENT ON COLUMN api_keys.last_used_at IS 'Its last use, accurate to some minutes.';
COMMENT ON COLUMN api_keys.visibility IS
    'Whether it sees everything or only rows of its owner: everything or own.';

COMMENT ON TABLE owner_quotas IS
    'The limits of an owner; NULL means no limit except that of the settings.';
COMMENT ON COLUMN owner_quotas.user_id IS 'The owner.';
COMMENT ON COLUMN owner_quotas.active_jobs IS 'Most active jobs at a time.';
COMMENT ON COLUMN owner_quotas.pages_per_job IS 'Most pages per job.';
COMMENT ON COLUMN owner_quotas.pages_per_day IS 'Most pages per day.';
COMMENT ON COLUMN owner_quotas.requests_per_minute IS 'Most API requests per minute.';
COMMENT ON COLUMN owner_quotas.updated_at IS 'When the row last changed.';

COMMENT ON TABLE idempotency_keys IS
    'Answered requests with their answers, written in the transaction of the request.';
COMMENT ON COLUMN idempotency_keys.user_id IS 'The owner that sent the request.';
COMMENT ON COLUMN idempotency_keys.key IS 'Idempotency key of the request.';
COMMENT ON COLUMN idempotency_keys.request_hash IS
    'Hash of the request: another request with the same key is refused.';
COMMENT ON COLUMN idempotency_keys.status IS
    'HTTP status of the answer; NULL only inside the transaction that makes the answer.';
COMMENT ON COLUMN idempotency_keys.answer IS 'The answer.';
COMMENT ON COLUMN idempotency_keys.sealed IS
    'An answer that contains a secret, encrypted with the installation''s key.';
COMMENT ON COLUMN idempotency_keys.created_at IS 'When the row was created.';

COMMENT ON TABLE metric_values IS
    'Counters and histograms of all processes together. part is empty for a counter; else a bucket, or the sum. Few rows, updated often.';
COMMENT ON COLUMN metric_values.name IS 'Name of the metric.';
COMMENT ON COLUMN metric_values.labels IS
    'Values of its labels, in the order of their declaration.';
COMMENT ON COLUMN metric_values.part IS
    'Empty for a counter; otherwise a bucket of a histogram, or its sum.';
COMMENT ON COLUMN metric_values.value IS 'The value.';

COMMENT ON TABLE metric_writers IS
    'A process that adds to the values, and the number of its last addition: a repetition is ignored.';
COMMENT ON COLUMN metric_writers.id IS 'The process.';
COMMENT ON COLUMN metric_writers.addition IS 'Number of its last addition.';
COMMENT ON COLUMN metric_writers.written_at IS 'When it last added.';

COMMENT ON TABLE service_processes IS
    'A process that runs background services, and the status of each.';
COMMENT ON COLUMN service_processes.id IS 'Primary key.';
COMMENT ON COLUMN service_processes.command IS
    'The command that was started, such as worker or api.';
COMMENT ON COLUMN service_processes.host IS 'The host name of its machine.';
COMMENT ON COLUMN service_processes.pid IS 'Its process ID.';
COMMENT ON COLUMN service_processes.process IS
    'Its name on its machine, by which others there see whether it still runs.';
COMMENT ON COLUMN service_processes.started_at IS 'When it started.';
COMMENT ON COLUMN service_processes.last_seen IS 'Its last heartbeat.';
COMMENT ON COLUMN service_processes.services IS 'The services with their states, as JSON.';

COMMENT ON TABLE render_lessons IS
    'Which pages of a source gain from rendering, by the shape of their URLs.';
COMMENT ON COLUMN render_lessons.source_id IS 'The source (`sources.id`).';
COMMENT ON COLUMN render_lessons.shape IS 'The shape of the URLs.';
COMMENT ON COLUMN render_lessons.streak IS
    'Pages in a row that gained from rendering, or, if negative, that did not.';
COMMENT ON COLUMN render_lessons.skipped IS
    'Pages that were not rendered because those before had not gained.';
COMMENT ON COLUMN render_lessons.updated_at IS 'When the row last changed.';

COMMENT ON TABLE domain_render_lessons IS
    'Which pages of a domain''s tasks gain from rendering, by the shape of their URLs.';
COMMENT ON COLUMN domain_render_lessons.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN domain_render_lessons.shape IS 'The shape of the URLs.';
COMMENT ON COLUMN domain_render_lessons.streak IS
    'Pages in a row that gained from rendering, or, if negative, that did not.';
COMMENT ON COLUMN domain_render_lessons.skipped IS
    'Pages that were not rendered because those before had not gained.';
COMMENT ON COLUMN domain_render_lessons.updated_at IS 'When the row last changed.';

COMMENT ON TABLE near_duplicates IS
    'Pages of a generation whose texts are nearly the same; a cluster is named by its first document.';
COMMENT ON COLUMN near_duplicates.generation_id IS 'The generation (`generations.id`).';
COMMENT ON COLUMN near_duplicates.document_id IS 'The document (`documents.id`).';
COMMENT ON COLUMN near_duplicates.cluster IS 'The first document of the cluster (`documents.id`).';

COMMENT ON TABLE search_words IS
    'The words of a generation. Those that are not spelled are lexemes, with the number of sections that have them among those that were counted; the empty one stands for all of these. Those that are spelled are words and names of headings, to correct a query with.';
COMMENT ON COLUMN search_words.generation_id IS 'The generation (`generations.id`).';
COMMENT ON COLUMN search_words.is_spelled IS
    'Whether it is a word or name as headings spell it; otherwise a lexeme.';
COMMENT ON COLUMN search_words.word IS
    'The word, in a collation where words with the same first letter are a range of the index.';
COMMENT ON COLUMN search_words.sections IS
    'Number of sections that have it, among those that were counted.';

COMMENT ON TABLE inbound_links IS
    'How many pages of a generation link to each of its documents.';
COMMENT ON COLUMN inbound_links.generation_id IS 'The generation (`generations.id`).';
COMMENT ON COLUMN inbound_links.document_id IS 'The document (`documents.id`).';
COMMENT ON COLUMN inbound_links.pages IS 'Number of pages that link to it.';

COMMENT ON TABLE domain_health IS
    'How visits of a domain ended lately, and the alarm that holds suspicious results.';
COMMENT ON COLUMN domain_health.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN domain_health.gone_share IS
    'Moving average over visits of known pages: the part that was answered with 404 or 410.';
COMMENT ON COLUMN domain_health.visits IS 'Visits since the share was last near zero.';
COMMENT ON COLUMN domain_health.blocked_in_a_row IS
    'Visits in a row that were answered with a challenge or refusal.';
COMMENT ON COLUMN domain_health.same_name IS
    'The name that pages of different products got one after the other.';
COMMENT ON COLUMN domain_health.same_in_a_row IS 'How many of them in a row.';
COMMENT ON COLUMN domain_health.alarm IS 'gone, blocked or same_page; NULL: no alarm.';
COMMENT ON COLUMN domain_health.alarm_at IS 'When the alarm was raised.';
COMMENT ON COLUMN domain_health.accepted IS
    'Whether an operator accepted the results: no further alarm until the domain has recovered.';

COMMENT ON TABLE product_aliases IS
    'A URL that redirects to the page of a product.';
COMMENT ON COLUMN product_aliases.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN product_aliases.url IS 'The URL that redirects.';
COMMENT ON COLUMN product_aliases.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN product_aliases.created_at IS 'When the row was created.';

COMMENT ON TABLE variant_prices IS
    'An offer of one variant of a product from recorded_at on: one row per change.';
COMMENT ON COLUMN variant_prices.id IS 'Primary key.';
COMMENT ON COLUMN variant_prices.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN variant_prices.variant IS
    'Its SKU, GTIN, URL or name: the first that the page has.';
COMMENT ON COLUMN variant_prices.price IS 'The price.';
COMMENT ON COLUMN variant_prices.currency IS 'ISO 4217 currency of the price.';
COMMENT ON COLUMN variant_prices.availability IS 'Availability, such as in_stock or out_of_stock.';
COMMENT ON COLUMN variant_prices.recorded_at IS 'When this offer began.';

COMMENT ON TABLE alert_rules IS
    'A condition on new offers, of one product or of a selection, that triggers an event.';
COMMENT ON COLUMN alert_rules.id IS 'Primary key.';
COMMENT ON COLUMN alert_rules.kind IS 'The condition, such as a price below an amount.';
COMMENT ON COLUMN alert_rules.percent IS 'Threshold in percent.';
COMMENT ON COLUMN alert_rules.amount IS 'Threshold as an amount.';
COMMENT ON COLUMN alert_rules.currency IS 'ISO 4217 currency of the amount.';
COMMENT ON COLUMN alert_rules.days IS 'Number of days that the condition looks back.';
COMMENT ON COLUMN alert_rules.product_id IS 'The product (`products.id`); NULL: a selection.';
COMMENT ON COLUMN alert_rules.selection IS 'Filters by name; empty: all products.';
COMMENT ON COLUMN alert_rules.created_at IS 'When the row was created.';

COMMENT ON VIEW archive_references IS
    'Every reference to a record of the archive: a table that refers to segments is part of this view.';
COMMENT ON COLUMN archive_references.segment IS
    'The archive segment with the stored response (`archive_segments.name`).';
COMMENT ON COLUMN archive_references.segment_offset IS
    'Where its record begins in the segment, in bytes.';
COMMENT ON COLUMN archive_references.segment_length IS
    'Length of its record in the segment, in bytes.';

COMMENT ON TABLE crawl_templates IS
    'Named crawl options to start crawls with.';
COMMENT ON COLUMN crawl_templates.id IS 'Primary key.';
COMMENT ON COLUMN crawl_templates.user_id IS 'The owner; NULL: created without an API key.';
COMMENT ON COLUMN crawl_templates.name IS 'Name of the template.';
COMMENT ON COLUMN crawl_templates.options IS
    'Start URLs and options as in the payload of a crawl, without secrets.';
COMMENT ON COLUMN crawl_templates.created_at IS 'When the row was created.';
COMMENT ON COLUMN crawl_templates.updated_at IS 'When the row last changed.';

COMMENT ON TABLE owners IS
    'The owners that have a name. The others are known by the IDs in their rows alone.';
COMMENT ON COLUMN owners.user_id IS 'The owner in the rows of other tables.';
COMMENT ON COLUMN owners.name IS 'Name of the owner, unique.';

COMMENT ON TABLE backlog_samples IS
    'Unfinished jobs of each owner and waiting tasks, once a minute. Deleted after two days.';
COMMENT ON COLUMN backlog_samples.at IS 'The minute of the sample.';
COMMENT ON COLUMN backlog_samples.queue IS 'jobs or tasks.';
COMMENT ON COLUMN backlog_samples.owner IS
    'Owner of the jobs (user_id); empty: the installation, and for tasks.';
COMMENT ON COLUMN backlog_samples.waiting IS 'Unfinished jobs of the owner, or waiting tasks.';
