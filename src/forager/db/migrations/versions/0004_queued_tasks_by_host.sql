-- Queued tasks by priority and host.

-- a worker walks from one host to the next, and reads no more tasks of a host than it can take
DROP INDEX crawl_tasks_queued_idx;
CREATE INDEX crawl_tasks_queued_idx
    ON crawl_tasks (priority, domain_id, scheduled_at, popularity DESC, id)
    WHERE status = 'queued';
