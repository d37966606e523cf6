-- jobs --------------------------------------------------------------------------------------------
COMMENT ON COLUMN crawl_jobs.lease IS 'Incremented by every claim and every revocation; the holder of an older lease can write nothing.';
COMMENT ON COLUMN crawl_jobs.last_heartbeat IS 'The last time its worker renewed its lease, which happens only while the runner responds.';
COMMENT ON COLUMN crawl_jobs.retry_count IS 'Retries so far; reset when a person retries the job.';
COMMENT ON COLUMN crawl_jobs.error_message IS 'Why it failed, or the error of its last run; NULL once it is completed.';
COMMENT ON COLUMN workers.note IS 'Why it claims nothing at all, in words.';

-- fetch -------------------------------------------------------------------------------------------
COMMENT ON COLUMN domains.domain_name IS 'The host in lower case, with its port if that is not the default. The row also covers subdomains without a row.';
COMMENT ON COLUMN domains.updated_at IS 'When a setting of the domain last changed; requests do not change it.';
COMMENT ON COLUMN domains.adaptive IS 'Whether the interval of its tasks follows how often their prices change; NULL: the default of the settings.';
COMMENT ON COLUMN domains.min_frequency IS 'Shortest interval of adaptive scheduling; NULL: the default of the settings.';
COMMENT ON COLUMN domains.max_frequency IS 'Longest interval of adaptive scheduling; NULL: the default of the settings.';
COMMENT ON COLUMN domains.blocked_until IS 'No requests before this time, because the host asked for it (Retry-After) or answered with challenges.';
COMMENT ON COLUMN proxies.updated_at IS 'When it was last changed, enabled or disabled; requests do not change it.';
COMMENT ON COLUMN proxies.last_used_at IS 'When it was last chosen for a request.';

-- archive -----------------------------------------------------------------------------------------
COMMENT ON COLUMN archive_segments.closed_at IS 'When its writer completed it; NULL: it is still written to, or its writer died.';
COMMENT ON COLUMN archive_segments.keep_until IS 'Not deleted before this time: it is being merged, or readers may still have an earlier reference to it.';

-- crawl -------------------------------------------------------------------------------------------
COMMENT ON COLUMN crawl_states.total_processed IS 'URLs that were tried: fetched, unchanged, duplicate and failed ones, but not excluded ones.';
COMMENT ON COLUMN crawl_states.total_pending IS 'URLs that are still in the frontier, including those that are being fetched.';
COMMENT ON COLUMN crawl_states.checkpoint IS 'What a crawl needs besides its URLs to continue: seeds and sitemaps that were read. Of other jobs: what their kind stores.';
COMMENT ON COLUMN crawl_states.current_depth IS 'The largest depth of a URL that was settled: links from the seed URLs.';
COMMENT ON COLUMN crawl_frontier.parent IS 'Hash of the URL of the page that it was found on.';
COMMENT ON COLUMN crawl_visited.parent IS 'Hash of the URL of the page that it was found on.';
COMMENT ON COLUMN crawl_visited.content_hash IS 'Hash of the extracted content.';
COMMENT ON COLUMN crawl_visited.etag IS 'ETag of the response.';
COMMENT ON COLUMN crawl_visited.last_modified IS 'Last-Modified of the response.';

-- documents ---------------------------------------------------------------------------------------
COMMENT ON COLUMN sources.keep_generations IS 'Number of generations that are kept, the published one included.';
COMMENT ON COLUMN sources.max_shrink IS 'Quality gate: the largest drop in pages that is published, as a share of the published pages.';
COMMENT ON COLUMN sources.payload IS 'Payload of the job that refreshes it: that of the last one that was published, or a declared one.';
COMMENT ON COLUMN sources.refresh_every IS 'Interval of its refreshes in seconds; NULL: none.';
COMMENT ON COLUMN generations.retired_at IS 'When another generation replaced it, the gate refused it, or it was abandoned.';
COMMENT ON COLUMN generations.note IS 'Why it was not published, or why it is being deleted, in words.';
COMMENT ON COLUMN documents.url_hash IS 'The first 16 bytes of SHA-256 of the normalized URL.';
COMMENT ON COLUMN generation_documents.url_hash IS 'The first 16 bytes of SHA-256 of the normalized URL.';
COMMENT ON COLUMN documents_active.url_hash IS 'The first 16 bytes of SHA-256 of the normalized URL.';
COMMENT ON COLUMN sections.level IS '1 to 6 as on the page; 0: text before the first heading; 7: a further part of the section that contains it.';
COMMENT ON COLUMN sections_active.level IS '1 to 6 as on the page; 0: text before the first heading; 7: a further part of the section that contains it.';
COMMENT ON COLUMN section_search.head_tsv IS 'Words and names of the heading, of the first section also those of the title; with source, language and kind as lexemes.';
COMMENT ON COLUMN section_search.tsv IS 'Words of the heading (weight A), of the title and the headings above (B) and of the text, and names; with source, language and kind as lexemes.';
COMMENT ON COLUMN search_words.sections IS 'Number of sections, of a spelled word headings, that have it, among those that were counted.';

-- tasks -------------------------------------------------------------------------------------------
COMMENT ON COLUMN crawl_tasks.started_at IS 'When a worker last claimed it for a download.';
COMMENT ON COLUMN crawl_tasks.completed_at IS 'End of the last visit: completed, failed, missed, or withheld because of an alarm.';
COMMENT ON COLUMN crawl_tasks.error_kind IS 'The kind of the last error, such as timeout or http_client; NULL once a visit succeeds.';
COMMENT ON COLUMN crawl_tasks.error_message IS 'The last error in words; NULL once a visit succeeds.';
COMMENT ON COLUMN crawl_tasks.adapted_frequency IS 'The current interval of adaptive scheduling; NULL: the schedule is not adaptive.';
COMMENT ON COLUMN task_attempts.outcome IS 'ok; unchanged; retry; missed: the last retry failed, and the task stays on its schedule; failed; held: the domain has an alarm; rested: postponed without a fault; lost: its worker died; withdrawn.';
COMMENT ON COLUMN dead_letters.attempts IS 'Attempts of the last visit.';
COMMENT ON COLUMN dead_letters.resolved_at IS 'When a user retried or dropped it, or a later visit succeeded; NULL: not yet.';

-- failures ----------------------------------------------------------------------------------------
COMMENT ON COLUMN error_logs.stage IS 'download, parse, or job for an error of a job.';
COMMENT ON COLUMN error_logs.stack_trace IS 'Where it happened in the code, for bugs of Forager and of parsers.';

-- images ------------------------------------------------------------------------------------------
COMMENT ON COLUMN images.status IS 'State of the download: pending, stored, refused or failed.';
COMMENT ON COLUMN images.problem IS 'Why the last attempt at the download failed, in words.';
COMMENT ON COLUMN images.fetched_at IS 'When it was last downloaded, refused or given up; with the file of another image, when that was downloaded.';

-- parsers -----------------------------------------------------------------------------------------
COMMENT ON COLUMN parse_rates.good IS 'Pages that gave a product without problems (outcome ok).';

-- outbox ------------------------------------------------------------------------------------------
COMMENT ON COLUMN outbox.topic IS 'The receiver: webhooks, crawl, parse, render, sections or products.';
COMMENT ON COLUMN outbox.ref_id IS 'What the message is about: an event, a domain with tasks, a document or a product.';
COMMENT ON COLUMN outbox.lane IS 'Messages of one lane are sent independently of the others: a webhook, or a band of priorities.';
COMMENT ON COLUMN outbox.due_at IS 'When it is sent or tried again; while it is being sent, the end of the claim.';

-- services ----------------------------------------------------------------------------------------
COMMENT ON COLUMN service_processes.command IS 'What the process runs, such as jobs, api or scheduler.';
