"""Prepared queries, in SQL that DuckDB and ClickHouse have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from forager.errors import NotFound
from forager.hints import Hint, action


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """SQL with placeholders in braces for datasets, `days` and `rows`."""

    name: str
    about: str
    sql: LiteralString


PRICE_CHANGES = PreparedQuery(
    "price-changes",
    "Price changes by brand: number, direction and size.",
    """
    WITH offers AS (
        SELECT product_id, "at", price, currency,
               min(price) OVER before AS old_price,
               min(currency) OVER before AS old_currency
          FROM {price_history}
        WINDOW before AS (PARTITION BY product_id ORDER BY "at", id
                          ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING)
    ), changes AS (
        SELECT product_id, CAST(price AS DOUBLE) AS new, CAST(old_price AS DOUBLE) AS old
          FROM offers
         WHERE "at" >= now() - INTERVAL {days} DAY AND price <> old_price AND old_price > 0
           AND coalesce(currency, '') = coalesce(old_currency, '')
    ), percents AS (
        SELECT product_id, new, old, (new - old) / old * 100 AS percent FROM changes
    )
    SELECT coalesce(p.brand, '') AS brand,
           count(*) AS changes,
           count(DISTINCT c.product_id) AS products,
           sum(CASE WHEN c.new > c.old THEN 1 ELSE 0 END) AS rises,
           sum(CASE WHEN c.new < c.old THEN 1 ELSE 0 END) AS falls,
           round(median(c.percent), 2) AS median_percent,
           round(min(c.percent), 2) AS largest_fall_percent,
           round(max(c.percent), 2) AS largest_rise_percent
      FROM percents AS c
      LEFT JOIN {products} AS p ON p.id = c.product_id
     GROUP BY 1
     ORDER BY 2 DESC, 1
     LIMIT {rows}
    """,
)

# Cost comes from the usage counters of proxies, which include robots.txt, images and redirects.
# Proxies with one address may have prices in several currencies: one row each, and the counts
# are in the first of them.
CRAWL_COST = PreparedQuery(
    "crawl-cost",
    "Cost of tasks and site crawls by domain and proxy: requests, failures, bytes, time, money.",
    """
    WITH counted AS (
        SELECT coalesce(domain, '') AS host,
               coalesce(proxy, 'direct') AS via,
               sum(CASE WHEN job_id IS NULL THEN 1 ELSE attempt END) AS requests,
               sum(CASE WHEN outcome IN ('ok', 'unchanged', 'fetched', 'duplicate', 'excluded')
                        THEN 0 ELSE 1 END
                   + CASE WHEN job_id IS NULL THEN 0 ELSE attempt - 1 END) AS failures,
               sum(coalesce(size, 0)) AS bytes,
               sum(coalesce(duration_ms, 0)) AS ms,
               count(duration_ms) AS timed,
               count(DISTINCT task_id) AS tasks,
               count(job_id) AS site_pages
          FROM {pages}
         WHERE "at" >= now() - INTERVAL {days} DAY
           AND outcome NOT IN ('rested', 'withdrawn', 'lost')
         GROUP BY 1, 2
    ), used AS (
        SELECT proxy_id, coalesce(domain, '') AS host,
               sum(coalesce(requests, 0)) AS requests, sum(coalesce(bytes, 0)) AS bytes
          FROM {proxy_usage}
         WHERE "at" >= now() - INTERVAL {days} DAY
         GROUP BY 1, 2
    ), billed AS (
        SELECT u.host AS host, coalesce(p.address, '') AS via, p.cost_currency AS currency,
               CASE p.cost_unit WHEN 'request' THEN p.cost_amount * u.requests
                                WHEN 'GB' THEN p.cost_amount * u.bytes / 1000000000 END AS cost
          FROM used AS u
          JOIN {proxies} AS p ON p.id = u.proxy_id
    ), lines AS (
        SELECT host, via, requests, failures, bytes, ms, timed, tasks, site_pages,
               nullif(0.0, 0.0) AS cost, nullif('', '') AS currency
          FROM counted
         UNION ALL
        SELECT host, via, 0, 0, 0, 0, 0, 0, 0, cost, currency
          FROM billed
    ), together AS (
        SELECT *, coalesce(currency, min(currency) OVER (PARTITION BY host, via)) AS paid_in
          FROM lines
    ), totals AS (
        SELECT host, via, paid_in, sum(requests) AS n_requests, sum(failures) AS n_failures,
               sum(bytes) AS n_bytes, sum(ms) AS n_ms, sum(timed) AS n_timed, sum(tasks) AS n_tasks,
               sum(site_pages) AS n_pages, sum(cost) AS total
          FROM together
         GROUP BY 1, 2, 3
    )
    SELECT host AS domain, via AS proxy, n_requests AS requests, n_failures AS failures,
           CASE WHEN n_requests > 0 THEN round(n_failures / n_requests * 100, 2) ELSE 0 END
               AS failed_percent,
           n_bytes AS bytes,
           round(n_ms / 1000, 1) AS seconds,
           CASE WHEN n_timed > 0 THEN round(n_ms / n_timed) END AS mean_ms,
           n_tasks AS tasks, n_pages AS site_pages,
           round(total, 4) AS cost, paid_in AS currency
      FROM totals
     ORDER BY total DESC NULLS LAST, n_requests DESC, host, via, paid_in
     LIMIT {rows}
    """,
)

PARSER_QUALITY = PreparedQuery(
    "parser-quality",
    "Success rates of parser versions by day.",
    """
    SELECT CAST(CAST("at" AS DATE) AS VARCHAR) AS day,
           parser,
           parser_version AS version,
           role,
           count(*) AS pages,
           sum(CASE WHEN outcome = 'ok' THEN 1 ELSE 0 END) AS ok,
           sum(CASE WHEN outcome = 'suspect' THEN 1 ELSE 0 END) AS suspect,
           sum(CASE WHEN outcome = 'incomplete' THEN 1 ELSE 0 END) AS incomplete,
           sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS failed,
           round(sum(CASE WHEN outcome = 'ok' THEN 100 ELSE 0 END) / count(*), 2) AS ok_percent,
           round(avg(confidence), 3) AS mean_confidence
      FROM {extractions}
     WHERE "at" >= now() - INTERVAL {days} DAY
     GROUP BY 1, 2, 3, 4
     ORDER BY 1 DESC, 5 DESC, 2, 3, 4
     LIMIT {rows}
    """,
)

QUERIES = {query.name: query for query in (PRICE_CHANGES, CRAWL_COST, PARSER_QUALITY)}


def query_named(name: str) -> PreparedQuery:
    found = QUERIES.get(name)
    if found is None:
        raise NotFound(
            f"there is no query {name!r}", hint=Hint("{} lists queries.", action("analytics list"))
        )
    return found
