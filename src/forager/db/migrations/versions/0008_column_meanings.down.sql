-- jobs --------------------------------------------------------------------------------------------
COMMENT ON COLUMN crawl_jobs.lease IS 'Incremented by every claim; the holder of an older lease can write nothing.';
COMMENT ON COLUMN crawl_jobs.last_heartbeat IS 'The last sign of progress from its worker.';
COMMENT ON COLUMN crawl_jobs.retry_count IS 'Retries so far.';
COMMENT ON COLUMN crawl_jobs.error_message IS 'Why it failed, or the error of the last attempt.';
COMMENT ON COLUMN workers.note IS 'What keeps it from working, in words.';

-- fetch -------------------------------------------------------------------------------------------
COMMENT ON COLUMN domains.domain_name IS 'The host name.';
COMMENT ON COLUMN domains.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN domains.adaptive IS 'Whether the interval of its tasks follows how often their pages change.';
COMMENT ON COLUMN domains.min_frequency IS 'Shortest interval of adaptive scheduling.';
COMMENT ON COLUMN domains.max_frequency IS 'Longest interval of adaptive scheduling.';
COMMENT ON COLUMN domains.blocked_until IS 'No requests before this time, because the host asked for it (Retry-After).';
COMMENT ON COLUMN proxies.updated_at IS 'When the row last changed.';
COMMENT ON COLUMN proxies.last_used_at IS 'Its last request.';

-- archive -----------------------------------------------------------------------------------------
COMMENT ON COLUMN archive_segments.closed_at IS 'When it was completed; NULL: it is still written to.';
COMMENT ON COLUMN archive_segments.keep_until IS 'Merged into another segment; readers that found it earlier may read it until then.';

-- crawl -------------------------------------------------------------------------------------------
COMMENT ON COLUMN crawl_states.total_processed IS 'URLs with an outcome.';
COMMENT ON COLUMN crawl_states.total_pending IS 'URLs that are still in the frontier.';
COMMENT ON COLUMN crawl_states.checkpoint IS 'State of a job that is no crawl, as its kind stores it.';
COMMENT ON COLUMN crawl_states.current_depth IS 'Depth of the crawl so far: links from the seed URLs.';
COMMENT ON COLUMN crawl_frontier.parent IS 'The page that it was found on.';
COMMENT ON COLUMN crawl_visited.parent IS 'The page that it was found on.';
COMMENT ON COLUMN crawl_visited.content_hash IS 'Hash of the extracted text.';
COMMENT ON COLUMN crawl_visited.etag IS 'ETag of the response, sent with the next request.';
COMMENT ON COLUMN crawl_visited.last_modified IS 'Last-Modified of the response, sent with the next request.';

-- documents ---------------------------------------------------------------------------------------
COMMENT ON COLUMN sources.keep_generations IS 'Generations that are kept; NULL: the default of the settings.';
COMMENT ON COLUMN sources.max_shrink IS 'Quality gate: the largest drop in pages that is published.';
COMMENT ON COLUMN sources.payload IS 'Payload of the job that refreshes it: that of the last one that was published.';
COMMENT ON COLUMN sources.refresh_every IS 'Interval of its refreshes; NULL: none.';
COMMENT ON COLUMN generations.retired_at IS 'When another generation replaced it.';
COMMENT ON COLUMN generations.note IS 'Why it was not published, in words.';
COMMENT ON COLUMN documents.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN generation_documents.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN documents_active.url_hash IS 'Hash of the normalized URL.';
COMMENT ON COLUMN sections.level IS 'Level of the heading: 1 to 6.';
COMMENT ON COLUMN sections_active.level IS 'Level of the heading: 1 to 6.';
COMMENT ON COLUMN section_search.head_tsv IS 'Words of the heading and title, with the source as a lexeme.';
COMMENT ON COLUMN section_search.tsv IS 'Words of the text, with the source as a lexeme.';
COMMENT ON COLUMN search_words.sections IS 'Number of sections that have it, among those that were counted.';

-- tasks -------------------------------------------------------------------------------------------
COMMENT ON COLUMN crawl_tasks.started_at IS 'Start of this round; of the last one while the task waits.';
COMMENT ON COLUMN crawl_tasks.completed_at IS 'End of this round; of the last one while the task waits.';
COMMENT ON COLUMN crawl_tasks.error_kind IS 'The kind of error, such as timeout or http_client.';
COMMENT ON COLUMN crawl_tasks.error_message IS 'The error in words.';
COMMENT ON COLUMN crawl_tasks.adapted_frequency IS 'The current interval of adaptive scheduling.';
COMMENT ON COLUMN task_attempts.outcome IS 'ok, unchanged, retry, failed, rested, lost or withdrawn.';
COMMENT ON COLUMN dead_letters.attempts IS 'Attempts of the last round.';
COMMENT ON COLUMN dead_letters.resolved_at IS 'When a user retried or dropped it; NULL: not yet.';

-- failures ----------------------------------------------------------------------------------------
COMMENT ON COLUMN error_logs.stage IS 'download or parse; NULL for an error of a job.';
COMMENT ON COLUMN error_logs.stack_trace IS 'Where it happened in the code, for bugs of Forager.';

-- images ------------------------------------------------------------------------------------------
COMMENT ON COLUMN images.status IS 'State of the download.';
COMMENT ON COLUMN images.problem IS 'Why the download failed, in words.';
COMMENT ON COLUMN images.fetched_at IS 'When it was downloaded.';

-- parsers -----------------------------------------------------------------------------------------
COMMENT ON COLUMN parse_rates.good IS 'Pages that it read without errors.';

-- outbox ------------------------------------------------------------------------------------------
COMMENT ON COLUMN outbox.topic IS 'The receiver: webhooks, crawl, parse, sections or products.';
COMMENT ON COLUMN outbox.ref_id IS 'What the message is about: an event, a task or a document.';
COMMENT ON COLUMN outbox.lane IS 'Messages of one lane are sent independently of the others: a webhook, or a priority.';
COMMENT ON COLUMN outbox.due_at IS 'When it is sent, or tried again.';

-- services ----------------------------------------------------------------------------------------
COMMENT ON COLUMN service_processes.command IS 'The command that was started, such as worker or api.';
