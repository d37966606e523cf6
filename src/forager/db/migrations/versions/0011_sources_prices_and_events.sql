-- jobs --------------------------------------------------------------------------------------------

-- fetch -------------------------------------------------------------------------------------------

CREATE TABLE host_minutes (
    domain_id bigint NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
    at timestamptz NOT NULL,
    requests bigint NOT NULL,
    redirects bigint NOT NULL,
    client_errors bigint NOT NULL,
    server_errors bigint NOT NULL,
    unanswered bigint NOT NULL,
    seconds double precision NOT NULL
        CONSTRAINT host_minutes_seconds_finite_check
        CHECK (seconds > '-Infinity' AND seconds < 'Infinity'),
    delay double precision NOT NULL
        CONSTRAINT host_minutes_delay_finite_check
        CHECK (delay > '-Infinity' AND delay < 'Infinity'),
    PRIMARY KEY (domain_id, at)
) WITH (fillfactor = 70);

CREATE INDEX host_minutes_at_idx ON host_minutes (at);

COMMENT ON TABLE host_minutes IS
    'Requests to one domain in one minute, from all processes. Deleted after a day.';
COMMENT ON COLUMN host_minutes.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN host_minutes.at IS 'Start of the minute.';
COMMENT ON COLUMN host_minutes.requests IS 'Requests that were sent.';
COMMENT ON COLUMN host_minutes.redirects IS 'Answers with a status of 3xx.';
COMMENT ON COLUMN host_minutes.client_errors IS 'Answers with a status of 4xx.';
COMMENT ON COLUMN host_minutes.server_errors IS 'Answers with a status of 5xx.';
COMMENT ON COLUMN host_minutes.unanswered IS 'Requests without a complete answer, such as timeouts.';
COMMENT ON COLUMN host_minutes.seconds IS 'Sum of the response times, in seconds.';
COMMENT ON COLUMN host_minutes.delay IS 'The longest delay between requests that applied, in seconds.';

ALTER TABLE domains ADD COLUMN traffic_delay double precision
    CONSTRAINT domains_traffic_delay_check CHECK (traffic_delay >= 0)
    CONSTRAINT domains_traffic_delay_finite_check
        CHECK (traffic_delay > '-Infinity' AND traffic_delay < 'Infinity');
COMMENT ON COLUMN domains.traffic_delay IS
    'Shortest delay between requests, in seconds, since a user slowed the domain down; NULL: not slowed down. A longer delay of the domain, crawl or robots.txt applies.';

-- crawl -------------------------------------------------------------------------------------------

CREATE TABLE crawl_minutes (
    job_id uuid NOT NULL,
    at timestamptz NOT NULL,
    user_id uuid,
    discovered bigint NOT NULL,
    settled bigint NOT NULL,
    failed bigint NOT NULL,
    newly_settled bigint NOT NULL,
    newly_failed bigint NOT NULL,
    PRIMARY KEY (job_id, at)
);

CREATE INDEX crawl_minutes_at_idx ON crawl_minutes (at);

COMMENT ON TABLE crawl_minutes IS
    'Counts of each crawl at work, stored once a minute. Deleted after two days.';
COMMENT ON COLUMN crawl_minutes.job_id IS 'The job (`crawl_jobs.id`); it may be deleted earlier.';
COMMENT ON COLUMN crawl_minutes.at IS 'The minute of the sample.';
COMMENT ON COLUMN crawl_minutes.user_id IS 'The owner of the job; NULL: the installation.';
COMMENT ON COLUMN crawl_minutes.discovered IS 'URLs discovered so far.';
COMMENT ON COLUMN crawl_minutes.settled IS 'URLs with an outcome so far.';
COMMENT ON COLUMN crawl_minutes.failed IS 'URLs that failed so far.';
COMMENT ON COLUMN crawl_minutes.newly_settled IS 'URLs that got their outcome since the last sample.';
COMMENT ON COLUMN crawl_minutes.newly_failed IS 'URLs that failed since the last sample.';

ALTER TABLE crawl_states
    ADD COLUMN memory_mb integer,
    ADD COLUMN log_lines jsonb;
COMMENT ON COLUMN crawl_states.memory_mb IS
    'Memory of its runner process in MB, which may run other jobs too.';
COMMENT ON COLUMN crawl_states.log_lines IS
    'The last log lines of its runner about this job: time, level and text.';

-- documents ---------------------------------------------------------------------------------------
ALTER TABLE sources
    ADD COLUMN markdown_way text,
    ADD COLUMN markdown_checked_at timestamptz;
COMMENT ON COLUMN sources.markdown_way IS
    'How the site offers its pages as markdown (`link`, `accept`, `address`, `llms.txt`, `llms-full.txt`), or `none`; NULL: not known yet.';
COMMENT ON COLUMN sources.markdown_checked_at IS 'When that was found out.';

ALTER TABLE generations ADD COLUMN embedded_at timestamptz;
COMMENT ON COLUMN generations.embedded_at IS 'When all its sections had vectors, so that it can be searched by meaning; NULL: not yet.';

-- tasks -------------------------------------------------------------------------------------------
ALTER TABLE crawl_tasks
    ADD COLUMN browser_since timestamptz,
    ADD COLUMN browser_until timestamptz,
    ADD COLUMN moved_to text;
COMMENT ON COLUMN crawl_tasks.moved_to IS
    'Where the URL redirects to permanently: requested instead while it is the page of the product.';
COMMENT ON COLUMN crawl_tasks.browser_since IS
    'When `needs_browser` was decided; NULL: it does not need one.';
COMMENT ON COLUMN crawl_tasks.browser_until IS
    'When the decision expires: the next visit is made without a browser again.';

-- products ----------------------------------------------------------------------------------------
ALTER TABLE products ADD COLUMN price_change double precision
    CONSTRAINT products_price_change_finite_check
        CHECK (price_change > '-Infinity' AND price_change < 'Infinity');
COMMENT ON COLUMN products.price_change IS
    'The last change of the price, in percent of the last other price in this currency; NULL: none.';

UPDATE products p
   SET price_change = (
        SELECT round(100 * (p.price / h.price - 1), 2)
          FROM price_history h
         WHERE h.product_id = p.id AND h.currency IS NOT DISTINCT FROM p.currency
           AND h.price > 0 AND h.price <> p.price
         ORDER BY h.recorded_at DESC, h.id DESC
         LIMIT 1)
 WHERE p.id IN (SELECT product_id FROM price_history
                 GROUP BY product_id HAVING min(price) <> max(price));

-- products that never changed are between drops and rises
CREATE INDEX products_price_change_idx ON products
    ((CASE WHEN price IS NOT NULL THEN coalesce(price_change, 0) END), id);

CREATE TABLE price_templates (
    domain_id  bigint PRIMARY KEY REFERENCES domains (id) ON DELETE CASCADE,
    path       text NOT NULL,
    shown_wins boolean NOT NULL DEFAULT false,
    decided_at timestamptz NOT NULL DEFAULT now(),
    checked_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE price_templates IS 'Where the pages of a domain show their price, as learned from visits.';
COMMENT ON COLUMN price_templates.domain_id IS 'The domain (`domains.id`).';
COMMENT ON COLUMN price_templates.path IS 'Path of the element that shows the price.';
COMMENT ON COLUMN price_templates.shown_wins IS
    'Whether the price at the path wins over structured data, which states list prices.';
COMMENT ON COLUMN price_templates.decided_at IS 'Since when this is used.';
COMMENT ON COLUMN price_templates.checked_at IS 'When recent visits last confirmed it.';

CREATE TABLE withheld_prices (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id    bigint NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    price         numeric(14, 4),
    currency      text,
    reason        text NOT NULL,
    outcome       text NOT NULL DEFAULT 'open',
    visits        integer NOT NULL DEFAULT 1,
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT withheld_prices_outcome_check
        CHECK (outcome IN ('open', 'confirmed', 'not_confirmed', 'wrong')),
    CONSTRAINT withheld_prices_price_finite_check
        CHECK (price > '-Infinity' AND price < 'Infinity')
);
CREATE INDEX withheld_prices_product_idx ON withheld_prices (product_id, first_seen_at, id);
COMMENT ON TABLE withheld_prices IS 'Prices that a page showed and that are not in the price history.';
COMMENT ON COLUMN withheld_prices.id IS 'Primary key.';
COMMENT ON COLUMN withheld_prices.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN withheld_prices.price IS 'The price; NULL: the page showed none.';
COMMENT ON COLUMN withheld_prices.currency IS 'ISO 4217 currency of the price.';
COMMENT ON COLUMN withheld_prices.reason IS 'Why the price was withheld, or marked as wrong.';
COMMENT ON COLUMN withheld_prices.outcome IS
    '`open`: waits for another visit; `confirmed`, `not_confirmed`; `wrong`: marked by a user.';
COMMENT ON COLUMN withheld_prices.visits IS 'Visits in a row that showed it.';
COMMENT ON COLUMN withheld_prices.first_seen_at IS 'When the page first showed it.';
COMMENT ON COLUMN withheld_prices.last_seen_at IS 'When the page last showed it.';

ALTER TABLE alert_rules
    DROP CONSTRAINT alert_rules_kind_check,
    ADD CONSTRAINT alert_rules_kind_check
        CHECK (kind IN ('price_drop', 'price_rise', 'price_below', 'price_above', 'new_low',
                        'back_in_stock', 'best_offer', 'undercut')),
    ADD COLUMN last_triggered_at timestamptz;
COMMENT ON COLUMN alert_rules.last_triggered_at IS 'When the rule last triggered an event.';

CREATE TABLE item_assignments (
    product_id  bigint PRIMARY KEY REFERENCES products (id) ON DELETE CASCADE,
    item        text NOT NULL,
    assigned_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX item_assignments_item_idx ON item_assignments (item);
COMMENT ON TABLE item_assignments IS 'Offers that a user linked to an item, or unlinked from it.';
COMMENT ON COLUMN item_assignments.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN item_assignments.item IS 'Key of the item, as in the view `product_items`.';
COMMENT ON COLUMN item_assignments.assigned_at IS 'When the user assigned it.';

CREATE TABLE currency_rates (
    from_currency text NOT NULL,
    to_currency   text NOT NULL,
    valid_from    date NOT NULL,
    rate          numeric(20, 10) NOT NULL,
    PRIMARY KEY (from_currency, to_currency, valid_from),
    CONSTRAINT currency_rates_rate_check CHECK (rate > 0),
    CONSTRAINT currency_rates_rate_finite_check CHECK (rate > '-Infinity' AND rate < 'Infinity')
);
COMMENT ON TABLE currency_rates IS 'Exchange rates that a user imported.';
COMMENT ON COLUMN currency_rates.from_currency IS 'ISO 4217 currency that is converted.';
COMMENT ON COLUMN currency_rates.to_currency IS 'ISO 4217 currency of the result.';
COMMENT ON COLUMN currency_rates.valid_from IS 'First day of the rate; it is valid until the next one.';
COMMENT ON COLUMN currency_rates.rate IS 'Units of the second currency for one of the first.';

CREATE TABLE own_prices (
    item       text PRIMARY KEY,
    name       text,
    price      numeric(14, 4) NOT NULL,
    currency   text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT own_prices_price_check CHECK (price > 0),
    CONSTRAINT own_prices_price_finite_check CHECK (price > '-Infinity' AND price < 'Infinity')
);
COMMENT ON TABLE own_prices IS 'The own price list, to compare shops with.';
COMMENT ON COLUMN own_prices.item IS 'Key of the item, as in the view `product_items`.';
COMMENT ON COLUMN own_prices.name IS 'Name in the price list.';
COMMENT ON COLUMN own_prices.price IS 'The own price.';
COMMENT ON COLUMN own_prices.currency IS 'ISO 4217 currency of the price.';
COMMENT ON COLUMN own_prices.updated_at IS 'When the price was imported.';

-- The item of each product: assigned by a user, or by its GTIN, or by brand and part number. Offers
-- without a GTIN belong to that of other offers with the same part number, if these have only one.
CREATE VIEW product_items AS
WITH codes AS (
    SELECT p.id,
           CASE WHEN ltrim(p.gtin, '0') !~ '^(2\d{11,12}|4\d{11}|2\d{7}|\d{1,7})$'
                THEN 'gtin:' || ltrim(p.gtin, '0') END AS gtin,
           CASE WHEN p.brand <> '' AND p.metadata ->> 'mpn' ~ '[[:alnum:]]'
                THEN 'mpn:' || lower(p.brand) || '/'
                     || lower(regexp_replace(p.metadata ->> 'mpn', '[^[:alnum:]]', '', 'g'))
           END AS mpn
      FROM products p
), gtins AS (
    SELECT mpn, min(gtin) AS gtin
      FROM codes
     WHERE mpn IS NOT NULL AND gtin IS NOT NULL
     GROUP BY mpn
    HAVING count(DISTINCT gtin) = 1
)
SELECT c.id AS product_id,
       coalesce(a.item, c.gtin, g.gtin, c.mpn, 'product:' || c.id) AS item,
       CASE WHEN a.item IS NOT NULL THEN 'user'
            WHEN c.gtin IS NOT NULL THEN 'gtin'
            WHEN c.mpn IS NOT NULL THEN 'mpn'
       END AS matched_by
  FROM codes c
  LEFT JOIN gtins g ON g.mpn = c.mpn AND c.gtin IS NULL
  LEFT JOIN item_assignments a ON a.product_id = c.id;
COMMENT ON VIEW product_items IS 'The item of each product: the same article in all shops.';
COMMENT ON COLUMN product_items.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN product_items.item IS 'Key of the item: `gtin:`, `mpn:` with the brand, or `product:`.';
COMMENT ON COLUMN product_items.matched_by IS '`user`, `gtin` or `mpn`; NULL: a separate item.';

-- One row for each item and currency with its best offer.
CREATE VIEW items AS
SELECT i.item,
       p.currency,
       (array_agg(p.product_name ORDER BY p.id))[1] AS name,
       (array_agg(p.brand ORDER BY p.id) FILTER (WHERE p.brand IS NOT NULL))[1] AS brand,
       (array_agg(p.category ORDER BY p.id) FILTER (WHERE p.category IS NOT NULL))[1] AS category,
       count(*) AS offers,
       count(DISTINCT p.domain_id) AS shops,
       count(*) FILTER (WHERE b.buyable) AS available,
       min(p.price) FILTER (WHERE b.buyable) AS best_price,
       (array_agg(p.id ORDER BY p.price, p.id)
            FILTER (WHERE b.buyable AND p.price IS NOT NULL))[1] AS best_product_id,
       max(p.price) FILTER (WHERE b.buyable) AS highest_price,
       max(p.price_changed_at) AS price_changed_at,
       max(p.last_seen_at) AS last_seen_at,
       o.price AS own_price,
       count(*) FILTER (WHERE b.buyable AND p.price < o.price) AS offers_below
  FROM product_items i
  JOIN products p ON p.id = i.product_id
 CROSS JOIN LATERAL (
    SELECT coalesce(p.availability NOT IN ('out_of_stock', 'discontinued'), true) AS buyable
 ) AS b
  LEFT JOIN own_prices o ON o.item = i.item AND o.currency = p.currency
 GROUP BY i.item, p.currency, o.price;
COMMENT ON VIEW items IS 'Items with their best offers, one row for each currency.';
COMMENT ON COLUMN items.item IS 'Key of the item.';
COMMENT ON COLUMN items.currency IS 'ISO 4217 currency of these offers.';
COMMENT ON COLUMN items.name IS 'Name of the first known offer.';
COMMENT ON COLUMN items.brand IS 'Brand of the first offer that has one.';
COMMENT ON COLUMN items.category IS 'Category of the first offer that has one.';
COMMENT ON COLUMN items.offers IS 'Number of offers.';
COMMENT ON COLUMN items.shops IS 'Number of domains.';
COMMENT ON COLUMN items.available IS 'Number of offers that can be bought; 0: out of stock everywhere.';
COMMENT ON COLUMN items.best_price IS 'Lowest price of the offers that can be bought.';
COMMENT ON COLUMN items.best_product_id IS 'The product with the lowest price (`products.id`).';
COMMENT ON COLUMN items.highest_price IS 'Highest price of the offers that can be bought.';
COMMENT ON COLUMN items.price_changed_at IS 'When a price last changed.';
COMMENT ON COLUMN items.last_seen_at IS 'When an offer was last seen.';
COMMENT ON COLUMN items.own_price IS 'Price in the own price list, in this currency.';
COMMENT ON COLUMN items.offers_below IS 'Number of offers below the own price.';

-- The price of each product at the end of each day of the last year on which it changed.
CREATE VIEW daily_prices AS
SELECT DISTINCT ON (h.product_id, day)
       h.product_id, (h.recorded_at AT TIME ZONE 'UTC')::date AS day,
       h.price, h.currency, h.availability
  FROM price_history h
 WHERE h.recorded_at > now() - interval '1 year'
 ORDER BY h.product_id, day, h.recorded_at DESC, h.id DESC;
COMMENT ON VIEW daily_prices IS 'The last offer of each day on which a product changed, for a year.';
COMMENT ON COLUMN daily_prices.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN daily_prices.day IS 'The day, in UTC.';
COMMENT ON COLUMN daily_prices.price IS 'The last price of the day.';
COMMENT ON COLUMN daily_prices.currency IS 'ISO 4217 currency of the price.';
COMMENT ON COLUMN daily_prices.availability IS 'The last availability of the day.';

-- Each price with the one before it in the same currency. Movers of a period are the first old and
-- the last new price of each product.
CREATE VIEW price_changes AS
SELECT h.product_id, p.product_name AS name, d.domain_name AS domain, p.brand, p.category,
       h.recorded_at, h.old_price, h.price, h.currency,
       h.price - h.old_price AS amount,
       round(100 * (h.price / h.old_price - 1), 2) AS percent,
       h.availability
  FROM (SELECT product_id, recorded_at, price, currency, availability,
               lag(price) OVER (PARTITION BY product_id, currency ORDER BY recorded_at, id)
                   AS old_price
          FROM price_history
         WHERE price > 0) AS h
  JOIN products p ON p.id = h.product_id
  JOIN domains d ON d.id = p.domain_id
 WHERE h.price <> h.old_price;
COMMENT ON VIEW price_changes IS 'Changes of prices with the price before, for drops and rises of a period.';
COMMENT ON COLUMN price_changes.product_id IS 'The product (`products.id`).';
COMMENT ON COLUMN price_changes.name IS 'Its name.';
COMMENT ON COLUMN price_changes.domain IS 'Its shop.';
COMMENT ON COLUMN price_changes.brand IS 'Its brand.';
COMMENT ON COLUMN price_changes.category IS 'Its category path.';
COMMENT ON COLUMN price_changes.recorded_at IS 'When the new price was first seen.';
COMMENT ON COLUMN price_changes.old_price IS 'The price before, in the same currency.';
COMMENT ON COLUMN price_changes.price IS 'The new price.';
COMMENT ON COLUMN price_changes.currency IS 'ISO 4217 currency of both prices.';
COMMENT ON COLUMN price_changes.amount IS 'The change; negative: a drop.';
COMMENT ON COLUMN price_changes.percent IS 'The change in percent of the price before.';
COMMENT ON COLUMN price_changes.availability IS 'The availability at the new price.';

-- The geometric mean of the price changes of all products that had a price on the first day.
CREATE VIEW price_index AS
WITH first AS (
    SELECT greatest((min(recorded_at) AT TIME ZONE 'UTC')::date,
                    (now() AT TIME ZONE 'UTC')::date - 90) AS day
      FROM price_history
), base AS MATERIALIZED (
    SELECT p.id, p.currency, split_part(p.category, ' > ', 1) AS category
      FROM products p
     WHERE EXISTS (SELECT FROM price_history h, first f
                    WHERE h.product_id = p.id AND h.currency = p.currency AND h.price > 0
                      AND (h.recorded_at AT TIME ZONE 'UTC')::date <= f.day)
), sizes AS (
    SELECT category, count(*) AS products FROM base GROUP BY category
), steps AS (
    SELECT b.category, (c.recorded_at AT TIME ZONE 'UTC')::date AS day,
           sum(ln(c.price / c.old_price)) AS step
      FROM base b
      JOIN price_changes c ON c.product_id = b.id AND c.currency = b.currency
     WHERE (c.recorded_at AT TIME ZONE 'UTC')::date > (SELECT day FROM first)
     GROUP BY 1, 2
)
SELECT s.category, d.day::date AS day,
       round(100 * exp(sum(coalesce(t.step, 0)) OVER (PARTITION BY s.category ORDER BY d.day)
                       / s.products), 2) AS value,
       s.products
  FROM sizes s
 CROSS JOIN generate_series((SELECT day FROM first), (now() AT TIME ZONE 'UTC')::date,
                            interval '1 day') AS d (day)
  LEFT JOIN steps t ON t.category IS NOT DISTINCT FROM s.category AND t.day = d.day;
COMMENT ON VIEW price_index IS 'Price level of each category by day, 100 on the first day of the last 90.';
COMMENT ON COLUMN price_index.category IS 'First step of the category path; NULL: none.';
COMMENT ON COLUMN price_index.day IS 'The day, in UTC.';
COMMENT ON COLUMN price_index.value IS 'The price level at its end; 100 on the first day.';
COMMENT ON COLUMN price_index.products IS 'Products that had a price on the first day.';

-- parsers -----------------------------------------------------------------------------------------
CREATE TABLE model_usage (
    day date PRIMARY KEY,
    requests integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    prompt_tokens bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    reserved_tokens bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE model_usage IS 'Use of the model for fields of products, by day.';
COMMENT ON COLUMN model_usage.day IS 'The day, in UTC.';
COMMENT ON COLUMN model_usage.requests IS 'Requests to the model.';
COMMENT ON COLUMN model_usage.failures IS 'Requests without a valid answer.';
COMMENT ON COLUMN model_usage.prompt_tokens IS 'Tokens of the questions.';
COMMENT ON COLUMN model_usage.completion_tokens IS 'Tokens of the answers.';
COMMENT ON COLUMN model_usage.reserved_tokens IS 'Tokens of requests in progress.';

-- events ------------------------------------------------------------------------------------------
ALTER TABLE catalog_events ADD COLUMN source_id text, ADD COLUMN user_id uuid;
CREATE INDEX catalog_events_source_idx ON catalog_events (source_id, id DESC)
    WHERE source_id IS NOT NULL;
COMMENT ON COLUMN catalog_events.source_id IS 'The source of an event about a source or a crawl (`sources.id`).';
COMMENT ON COLUMN catalog_events.user_id IS 'Owner of the source when the event occurred.';

-- webhooks ----------------------------------------------------------------------------------------
ALTER TABLE webhooks ADD COLUMN source_id text, ADD COLUMN pattern text;
COMMENT ON COLUMN webhooks.source_id IS 'Only events of this source (`sources.id`); NULL: all.';
COMMENT ON COLUMN webhooks.pattern IS
    'Only changes of pages whose URL, or of sections whose heading, matches; NULL: all.';

-- access ------------------------------------------------------------------------------------------
