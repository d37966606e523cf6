-- Crawl templates, and the responses of webhooks.

-- crawl -------------------------------------------------------------------------------------------

-- Named crawl options to start crawls with.
CREATE TABLE crawl_templates (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- the owner; NULL: created without an API key
    user_id    uuid,
    name       text NOT NULL,
    -- start URLs and options as in the payload of a crawl, without secrets
    options    jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT crawl_templates_name_check CHECK (length(name) BETWEEN 1 AND 100)
);
CREATE UNIQUE INDEX crawl_templates_name_key
    ON crawl_templates (name, user_id) NULLS NOT DISTINCT;


-- outbox ------------------------------------------------------------------------------------------

-- the responses to the last attempts of a webhook message, newest first; NULL: none recorded
ALTER TABLE outbox ADD COLUMN responses jsonb;
