-- Back to schema 0003.

DROP INDEX crawl_tasks_queued_idx;
CREATE INDEX crawl_tasks_queued_idx
    ON crawl_tasks (priority, scheduled_at, popularity DESC, id) WHERE status = 'queued';
