-- One outbox for webhooks, search engine and broker; rendering, health of shops, words of search.

-- jobs --------------------------------------------------------------------------------------------

-- whether the worker has a browser
ALTER TABLE workers ADD COLUMN renders boolean NOT NULL DEFAULT false;


-- fetch -------------------------------------------------------------------------------------------

-- requests per second of each (domain, proxy) pair; NULL: the default of 5
ALTER TABLE domains
    ADD COLUMN proxy_rate double precision,
    ADD CONSTRAINT domains_proxy_rate_check CHECK (proxy_rate >= 1 AND proxy_rate <= 5),
    ADD CONSTRAINT domains_proxy_rate_finite_check
        CHECK (proxy_rate > '-Infinity' AND proxy_rate < 'Infinity');

-- The region of the nearest domain that covers a host: the host itself, or one with a dot above it.
CREATE FUNCTION region_of_host(host text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT d.region
      FROM domains d
     WHERE d.domain_name = host
        OR d.domain_name = ANY (ARRAY(
               SELECT array_to_string(labels[first:], '.')
                 FROM (SELECT string_to_array(host, '.') AS labels) AS split,
                      generate_series(2, array_length(labels, 1) - 1) AS first
           ))
     ORDER BY length(d.domain_name) DESC
     LIMIT 1
$$;

-- NULL: auto, unless a task or a crawl says otherwise
ALTER TABLE domains
    ADD COLUMN render text,
    -- patterns of URLs that are always rendered
    ADD COLUMN render_urls text[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT domains_render_check CHECK (render IN ('auto', 'always', 'never'));


-- jobs --------------------------------------------------------------------------------------------

-- of a worker for tasks: the versions of each parser that it has installed, by name
ALTER TABLE workers ADD COLUMN parsers jsonb;


-- crawl -------------------------------------------------------------------------------------------

-- whether and why the page was rendered in a browser, in words; NULL where it needed none
ALTER TABLE crawl_visited ADD COLUMN rendering text;


-- render ------------------------------------------------------------------------------------------

-- Which pages of a source gain from rendering, by the shape of their URLs.
CREATE TABLE render_lessons (
    source_id  text NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    shape      text NOT NULL,
    -- pages in a row that gained from it, or, if negative, that did not
    streak     integer NOT NULL,
    -- pages that were not rendered because those before had not gained
    skipped    integer NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (source_id, shape)
);

-- The same for the tasks of a domain.
CREATE TABLE domain_render_lessons (
    domain_id  bigint NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
    shape      text NOT NULL,
    streak     integer NOT NULL,
    skipped    integer NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (domain_id, shape)
);


-- documents ---------------------------------------------------------------------------------------

-- blocks that repeat on most pages, as extraction learned them from a sample; NULL until then
ALTER TABLE sources ADD COLUMN repeated_blocks jsonb;
-- when its options were last declared; jobs that are older do not replace them
ALTER TABLE sources ADD COLUMN declared_at timestamptz;

-- SimHash of the text; NULL: too short to compare, or extracted by an earlier version
ALTER TABLE documents ADD COLUMN simhash bigint;

-- Pages of a generation whose texts are nearly the same; a cluster is named by its first document.
CREATE TABLE near_duplicates (
    generation_id bigint NOT NULL,
    document_id   bigint NOT NULL,
    cluster       bigint NOT NULL,
    PRIMARY KEY (generation_id, document_id)
);
CREATE INDEX near_duplicates_cluster_idx ON near_duplicates (generation_id, cluster);

-- The words of a generation. Those that are not spelled are lexemes, with the number of sections
-- that have them among those that were counted; the empty one stands for all of these. Those that
-- are spelled are words and names of headings, to correct a query with.
CREATE TABLE search_words (
    generation_id bigint NOT NULL,
    is_spelled    boolean NOT NULL,
    -- in this collation, words with the same first letter are a range of the index
    word          text COLLATE "C" NOT NULL,
    sections      integer NOT NULL,
    PRIMARY KEY (generation_id, is_spelled, word)
);

-- How many pages of a generation link to each of its documents.
CREATE TABLE inbound_links (
    generation_id bigint NOT NULL,
    document_id   bigint NOT NULL,
    pages         integer NOT NULL,
    PRIMARY KEY (generation_id, document_id)
);


-- tasks -------------------------------------------------------------------------------------------

-- visits in a row whose last retry failed, and since when
ALTER TABLE crawl_tasks
    ADD COLUMN failed_visits integer NOT NULL DEFAULT 0,
    ADD COLUMN failing_since timestamptz;

-- as requested; NULL: the domain's. With auto, `needs_browser` is what its visits have shown.
ALTER TABLE crawl_tasks
    ADD COLUMN render text,
    ADD COLUMN needs_browser boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT crawl_tasks_render_check CHECK (render IN ('auto', 'always', 'never'));

-- How visits of a domain ended lately, and the alarm that holds suspicious results.
CREATE TABLE domain_health (
    domain_id        bigint PRIMARY KEY REFERENCES domains (id) ON DELETE CASCADE,
    -- moving average over visits of known pages: the part that was answered with 404 or 410
    gone_share       double precision NOT NULL DEFAULT 0,
    -- visits since the share was last near zero
    visits           integer NOT NULL DEFAULT 0,
    blocked_in_a_row integer NOT NULL DEFAULT 0,
    -- the name that pages of different products got one after the other
    same_name        text,
    same_in_a_row    integer NOT NULL DEFAULT 0,
    -- gone, blocked, same_page; NULL: no alarm
    alarm            text,
    alarm_at         timestamptz,
    -- an operator accepted the results: no further alarm until the domain has recovered
    accepted         boolean NOT NULL DEFAULT false,
    CONSTRAINT domain_health_alarm_check CHECK (alarm IN ('gone', 'blocked', 'same_page')),
    CONSTRAINT domain_health_gone_share_finite_check
        CHECK (gone_share > '-Infinity' AND gone_share < 'Infinity')
);


-- products ----------------------------------------------------------------------------------------

-- offers of the same product, by GTIN or by brand and part number
CREATE INDEX products_gtin_idx ON products (ltrim(gtin, '0')) WHERE gtin IS NOT NULL;
CREATE INDEX products_mpn_idx
    ON products (lower(brand), lower(regexp_replace(metadata ->> 'mpn', '[^[:alnum:]]', '', 'g')))
    WHERE metadata ? 'mpn';

-- A URL that redirects to the page of a product.
CREATE TABLE product_aliases (
    url_hash   bytea PRIMARY KEY,
    url        text NOT NULL,
    product_id bigint NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX product_aliases_product_idx ON product_aliases (product_id);

-- An offer of one variant of a product from recorded_at on: one row per change.
CREATE TABLE variant_prices (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id   bigint NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    -- its SKU, GTIN, URL or name: the first that the page has
    variant      text NOT NULL,
    price        numeric(14, 4),
    currency     text,
    availability text,
    recorded_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT variant_prices_price_finite_check
        CHECK (price > '-Infinity' AND price < 'Infinity')
);
CREATE INDEX variant_prices_variant_idx
    ON variant_prices (product_id, variant, recorded_at, id);

-- A condition on new offers, of one product or of a selection, that triggers an event.
CREATE TABLE alert_rules (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL,
    percent    numeric(6, 3),
    amount     numeric(14, 4),
    currency   text,
    days       integer,
    product_id bigint REFERENCES products (id) ON DELETE CASCADE,
    -- filters by name; empty: all products
    selection  jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT alert_rules_kind_check
        CHECK (kind IN ('price_drop', 'price_below', 'new_low', 'back_in_stock')),
    CONSTRAINT alert_rules_percent_check CHECK (percent > 0 AND percent < 100),
    CONSTRAINT alert_rules_percent_finite_check
        CHECK (percent > '-Infinity' AND percent < 'Infinity'),
    CONSTRAINT alert_rules_amount_check CHECK (amount > 0),
    CONSTRAINT alert_rules_amount_finite_check
        CHECK (amount > '-Infinity' AND amount < 'Infinity'),
    CONSTRAINT alert_rules_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT alert_rules_days_check CHECK (days > 0)
);
CREATE UNIQUE INDEX alert_rules_key
    ON alert_rules (product_id, kind, percent, amount, currency, days, selection)
    NULLS NOT DISTINCT;


-- images ------------------------------------------------------------------------------------------

ALTER TABLE images ADD COLUMN pending_since timestamptz NOT NULL DEFAULT now();


-- parsers -----------------------------------------------------------------------------------------

-- until when workers read its pages generically, because it kept breaking
ALTER TABLE parser_rollouts
    ADD COLUMN bypassed_until timestamptz,
    ADD COLUMN bypass_reason text;


-- webhooks ----------------------------------------------------------------------------------------

-- events of one product are delivered one after the other
ALTER TABLE webhooks ADD COLUMN ordered boolean NOT NULL DEFAULT false;


-- outbox ------------------------------------------------------------------------------------------

-- Messages to other systems, written in the transaction of the change they report. A message carries
-- ids, not state, so that a duplicate is harmless. Ids are also versions: a row is changed under a
-- lock, so that its later change has the higher id.

DROP INDEX outbox_target_idx, outbox_unsent_idx;
ALTER TABLE outbox RENAME COLUMN target_id TO lane;
ALTER TABLE outbox RENAME COLUMN next_attempt_at TO due_at;
UPDATE outbox SET lane = 0 WHERE lane IS NULL;
UPDATE outbox SET topic = 'webhooks' WHERE topic = 'webhook';
ALTER TABLE outbox
    -- messages of one lane are claimed together: a webhook, or a band of priorities
    ALTER COLUMN lane SET DEFAULT 0,
    ALTER COLUMN lane SET NOT NULL,
    -- ids of tasks, or the number of sections that a deleted document had
    ADD COLUMN payload bigint[],
    -- messages of a lane with the same key are sent one after the other
    ADD COLUMN order_key bigint;
CREATE INDEX outbox_delivery_idx ON outbox (lane, id) WHERE topic = 'webhooks';
CREATE INDEX outbox_due_idx
    ON outbox (topic, lane, due_at, id)
    WHERE sent_at IS NULL AND given_up_at IS NULL;
CREATE INDEX outbox_order_idx
    ON outbox (topic, lane, order_key, id)
    WHERE order_key IS NOT NULL AND sent_at IS NULL AND given_up_at IS NULL;

-- The search engine refuses a version that is lower than the one it has.
SELECT setval(
    pg_get_serial_sequence('outbox', 'id'),
    greatest(
        nextval(pg_get_serial_sequence('outbox', 'id')),
        nextval(pg_get_serial_sequence('index_outbox', 'id'))
    )
);
INSERT INTO outbox (topic, ref_id, payload, created_at, due_at, attempts, last_error)
SELECT kind, ref_id, CASE WHEN sections IS NOT NULL THEN ARRAY[sections::bigint] END,
       created_at, next_attempt_at, attempts, last_error
  FROM index_outbox
 ORDER BY id;
INSERT INTO outbox (topic, lane, ref_id, payload, created_at)
SELECT stage, band, domain_id, task_ids, created_at
  FROM dispatch_outbox
 ORDER BY id;
DROP TABLE index_outbox, dispatch_outbox;


-- archive -----------------------------------------------------------------------------------------

-- Every reference to a record of the archive: a table that refers to segments is part of this view.
CREATE VIEW archive_references AS
SELECT segment, segment_offset, segment_length FROM crawl_visited WHERE segment IS NOT NULL
UNION ALL
SELECT segment, segment_offset, segment_length FROM generation_documents WHERE segment IS NOT NULL
UNION ALL
SELECT segment, segment_offset, segment_length FROM crawl_tasks WHERE segment IS NOT NULL
UNION ALL
SELECT segment, segment_offset, segment_length FROM task_attempts WHERE segment IS NOT NULL
UNION ALL
SELECT segment, segment_offset, segment_length FROM extractions WHERE segment IS NOT NULL;
