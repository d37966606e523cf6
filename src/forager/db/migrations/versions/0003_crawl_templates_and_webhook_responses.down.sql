-- Back to schema 0002. Crawl templates and recorded responses are dropped.

ALTER TABLE outbox DROP COLUMN responses;
DROP TABLE crawl_templates;
