-- jobs --------------------------------------------------------------------------------------------
ALTER TABLE crawl_jobs DROP CONSTRAINT crawl_jobs_run_after_check;
DROP INDEX crawl_jobs_host_idx;
ALTER TABLE workers DROP COLUMN brake;
DROP INDEX crawl_jobs_own_runner_idx;
ALTER TABLE crawl_jobs DROP COLUMN own_runner, DROP COLUMN runner_losses;

-- fetch -------------------------------------------------------------------------------------------
UPDATE proxies SET failure_count = least(total_failures, 2147483647);
ALTER TABLE proxies DROP COLUMN total_failures;
ALTER TABLE domains DROP COLUMN slot_delay;
ALTER TABLE domains DROP COLUMN blocked_at;

-- tasks -------------------------------------------------------------------------------------------
DROP INDEX crawl_tasks_failing_idx;
ALTER TABLE crawl_tasks DROP CONSTRAINT crawl_tasks_scheduled_at_check;
ALTER TABLE crawl_tasks DROP CONSTRAINT crawl_tasks_next_crawl_at_check;

-- access ------------------------------------------------------------------------------------------
DROP TABLE owners;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_expires_at_check, DROP COLUMN visibility;

-- documents ---------------------------------------------------------------------------------------
ALTER TABLE sources DROP CONSTRAINT sources_next_refresh_at_check;

-- metrics -----------------------------------------------------------------------------------------
DROP TABLE backlog_samples;

-- comments ---------------------------------------------------------------------------------------
DO $$
DECLARE
    commented text;
BEGIN
    FOR commented IN
        SELECT CASE WHEN d.objsubid > 0
                    THEN format('COLUMN %I.%I', c.relname, a.attname)
                    ELSE format('%s %I', CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
                                c.relname)
               END
          FROM pg_description d
          JOIN pg_class c ON c.oid = d.objoid AND c.relkind IN ('r', 'v')
          LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid
         WHERE d.classoid = 'pg_class'::regclass
           AND c.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('COMMENT ON %s IS NULL', commented);
    END LOOP;
END
$$;
