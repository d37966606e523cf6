"""Prepared queries, in ClickHouse's SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from forager.errors import NotFound
from forager.hints import Hint, action


@dataclass(frozen=True, slots=True)
class Query:
    """SQL with placeholders in braces for datasets, `days` and `rows`."""

    name: str
    about: str
    sql: LiteralString


PRICE_CHANGES = Query(
    "price-changes",
    "Price changes by brand: number, direction and size.",
    """
    WITH offers AS (
        SELECT product_id, at, price, currency,
               lagInFrame(price) OVER history AS old_price,
               lagInFrame(currency) OVER history AS old_currency
          FROM {price_history}
        WINDOW history AS (PARTITION BY product_id ORDER BY at, id
                           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ), changes AS (
        SELECT product_id, toFloat64(price) AS new, toFloat64(old_price) AS old,
               (new - old) / old * 100 AS percent
          FROM offers
         WHERE at >= now() - INTERVAL {days} DAY AND price != old_price AND old_price > 0
           AND coalesce(currency, '') = coalesce(old_currency, '')
    )
    SELECT coalesce(p.brand, '') AS brand,
           count() AS changes,
           uniqExact(c.product_id) AS products,
           countIf(c.new > c.old) AS rises,
           countIf(c.new < c.old) AS falls,
           round(quantileExact(0.5)(assumeNotNull(c.percent)), 2) AS median_percent,
           round(min(c.percent), 2) AS largest_fall_percent,
           round(max(c.percent), 2) AS largest_rise_percent
      FROM changes AS c
      LEFT JOIN {products} AS p ON p.id = c.product_id
     GROUP BY brand
     ORDER BY changes DESC, brand
     LIMIT {rows}
    """,
)

# Cost comes from the usage counters of proxies, which include robots.txt, images and redirects.
# Proxies with one address may have prices in several currencies: one row each, and the counts
# are in the first of them.
CRAWL_COST = Query(
    "crawl-cost",
    "Cost of tasks and site crawls by domain and proxy: requests, failures, bytes, time, money.",
    """
    WITH counted AS (
        SELECT coalesce(domain, '') AS domain,
               coalesce(proxy, 'direct') AS proxy,
               sum(if(job_id IS NULL, 1, assumeNotNull(attempt))) AS requests,
               countIf(outcome NOT IN ('ok', 'unchanged', 'fetched', 'duplicate', 'excluded'))
                   + sum(if(job_id IS NULL, 0, assumeNotNull(attempt) - 1)) AS failures,
               sum(coalesce(size, 0)) AS bytes,
               sum(coalesce(duration_ms, 0)) AS ms,
               countIf(duration_ms IS NOT NULL) AS timed,
               uniqExact(task_id) AS tasks,
               countIf(job_id IS NOT NULL) AS site_pages
          FROM {pages}
         WHERE at >= now() - INTERVAL {days} DAY AND outcome NOT IN ('rested', 'withdrawn', 'lost')
         GROUP BY domain, proxy
    ), used AS (
        SELECT assumeNotNull(proxy_id) AS proxy_id, coalesce(domain, '') AS domain,
               sum(coalesce(requests, 0)) AS requests, sum(coalesce(bytes, 0)) AS bytes
          FROM {proxy_usage}
         WHERE toDate(at, 'UTC') > toDate(now(), 'UTC') - {days}
         GROUP BY proxy_id, domain
    ), priced AS (
        SELECT u.domain AS domain, coalesce(p.address, '') AS proxy, p.cost_currency AS currency,
               coalesce(p.cost_unit, '') AS unit, coalesce(p.cost_amount, 0) AS amount,
               u.requests AS requests, u.bytes AS bytes
          FROM used AS u
          JOIN {proxies} AS p ON p.id = u.proxy_id
    ), billed AS (
        SELECT domain, proxy, currency,
               multiIf(unit = 'request', amount * requests,
                       unit = 'GB', amount * bytes / 1000000000,
                       NULL) AS cost
          FROM priced
    ), lines AS (
        SELECT domain, proxy, requests, failures, bytes, ms, timed, tasks, site_pages,
               CAST(NULL AS Nullable(Float64)) AS cost, CAST(NULL AS Nullable(String)) AS currency
          FROM counted
         UNION ALL
        SELECT domain, proxy, 0, 0, 0, 0, 0, 0, 0, cost, currency
          FROM billed
    ), together AS (
        SELECT *, coalesce(currency, min(currency) OVER (PARTITION BY domain, proxy)) AS paid_in
          FROM lines
    )
    SELECT domain, proxy,
           sum(together.requests) AS requests,
           sum(together.failures) AS failures,
           if(requests > 0, round(failures / requests * 100, 2), 0) AS failed_percent,
           sum(together.bytes) AS bytes,
           round(sum(ms) / 1000, 1) AS seconds,
           if(sum(timed) > 0, round(sum(ms) / sum(timed)), NULL) AS mean_ms,
           sum(together.tasks) AS tasks,
           sum(together.site_pages) AS site_pages,
           round(sum(together.cost), 4) AS cost,
           paid_in AS currency
      FROM together
     GROUP BY domain, proxy, paid_in
     ORDER BY cost DESC NULLS LAST, requests DESC, domain, proxy, currency
     LIMIT {rows}
    """,
)

PARSER_QUALITY = Query(
    "parser-quality",
    "Success rates of parser versions by day.",
    """
    SELECT toString(toDate(at)) AS day,
           assumeNotNull(parser) AS parser,
           assumeNotNull(parser_version) AS version,
           assumeNotNull(role) AS role,
           count() AS pages,
           countIf(outcome = 'ok') AS ok,
           countIf(outcome = 'suspect') AS suspect,
           countIf(outcome = 'incomplete') AS incomplete,
           countIf(outcome = 'failed') AS failed,
           round(ok / pages * 100, 2) AS ok_percent,
           round(avg(confidence), 3) AS mean_confidence
      FROM {extractions}
     WHERE at >= now() - INTERVAL {days} DAY
     GROUP BY day, parser, version, role
     ORDER BY day DESC, pages DESC, parser, version, role
     LIMIT {rows}
    """,
)

QUERIES = {query.name: query for query in (PRICE_CHANGES, CRAWL_COST, PARSER_QUALITY)}


def query_named(name: str) -> Query:
    found = QUERIES.get(name)
    if found is None:
        raise NotFound(
            f"there is no query {name!r}",
            hint=Hint("{} lists queries.", action("analytics list")),
        )
    return found
