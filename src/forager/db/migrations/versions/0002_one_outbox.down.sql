-- Back to schema 0001. Unsent messages are kept; what only the newer version knows is dropped.

DROP VIEW archive_references;

CREATE TABLE dispatch_outbox (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stage      text NOT NULL,
    band       smallint NOT NULL,
    domain_id  bigint NOT NULL,
    task_ids   bigint[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT dispatch_outbox_stage_check CHECK (stage IN ('crawl', 'parse')),
    CONSTRAINT dispatch_outbox_band_check CHECK (band BETWEEN 1 AND 3)
);
CREATE INDEX dispatch_outbox_order_idx ON dispatch_outbox (band, id);
CREATE TABLE index_outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind            text NOT NULL,
    ref_id          bigint NOT NULL,
    sections        integer,
    created_at      timestamptz NOT NULL DEFAULT now(),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    attempts        integer NOT NULL DEFAULT 0,
    last_error      text
);
CREATE INDEX index_outbox_due_idx ON index_outbox (kind, next_attempt_at, id);

SELECT setval(
    pg_get_serial_sequence('index_outbox', 'id'), nextval(pg_get_serial_sequence('outbox', 'id'))
);
INSERT INTO index_outbox (kind, ref_id, sections, created_at, next_attempt_at, attempts, last_error)
SELECT topic, ref_id, payload[1], created_at, due_at, attempts, last_error
  FROM outbox
 WHERE topic IN ('sections', 'products') AND sent_at IS NULL AND given_up_at IS NULL
 ORDER BY id;
INSERT INTO dispatch_outbox (stage, band, domain_id, task_ids, created_at)
SELECT CASE topic WHEN 'render' THEN 'crawl' ELSE topic END, lane, ref_id, payload, created_at
  FROM outbox
 WHERE topic IN ('crawl', 'parse', 'render')
 ORDER BY id;
DELETE FROM outbox WHERE topic <> 'webhooks';
UPDATE outbox SET topic = 'webhook';

DROP INDEX outbox_delivery_idx, outbox_due_idx, outbox_order_idx;
ALTER TABLE outbox
    DROP COLUMN payload,
    DROP COLUMN order_key,
    ALTER COLUMN lane DROP NOT NULL,
    ALTER COLUMN lane DROP DEFAULT;
ALTER TABLE outbox RENAME COLUMN lane TO target_id;
ALTER TABLE outbox RENAME COLUMN due_at TO next_attempt_at;
CREATE INDEX outbox_target_idx ON outbox (topic, target_id, id);
CREATE INDEX outbox_unsent_idx
    ON outbox (topic, target_id, next_attempt_at, id)
    WHERE sent_at IS NULL AND given_up_at IS NULL;

ALTER TABLE webhooks DROP COLUMN ordered;
ALTER TABLE parser_rollouts DROP COLUMN bypassed_until, DROP COLUMN bypass_reason;
ALTER TABLE images DROP COLUMN pending_since;
DROP TABLE alert_rules, variant_prices, product_aliases;
DROP INDEX products_mpn_idx, products_gtin_idx;
DROP TABLE domain_health;
ALTER TABLE crawl_tasks
    DROP COLUMN failed_visits,
    DROP COLUMN failing_since,
    DROP COLUMN render,
    DROP COLUMN needs_browser;
DROP TABLE inbound_links, search_words, near_duplicates;
ALTER TABLE documents DROP COLUMN simhash;
ALTER TABLE sources DROP COLUMN repeated_blocks, DROP COLUMN declared_at;
DROP TABLE render_lessons, domain_render_lessons;
ALTER TABLE domains DROP COLUMN render, DROP COLUMN render_urls;
ALTER TABLE workers DROP COLUMN renders;
ALTER TABLE crawl_visited DROP COLUMN rendering;
ALTER TABLE workers DROP COLUMN parsers;
ALTER TABLE domains DROP COLUMN proxy_rate;
DROP FUNCTION region_of_host(text);
