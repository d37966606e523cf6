"""Fill a database like that of a busy installation after a year: jobs, pages, products, history."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of all other tables follow from these."""

    jobs: int = 100_000
    pages: int = 1_000_000
    products: int = 1_000_000
    domains: int = 1_000
    sources: int = 2_000

    def as_values(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


_PROBLEMS = (
    '[{"field": "price", "rule": "jump", "message": "it fell by half", "severity": "doubt"}]'
)
# The first ten jobs are running and have half of all pages, as the overview page shows them.
_JOBS: LiteralString = """
    INSERT INTO workers (id, host, pid, version, capacity, last_seen, role)
    SELECT gen_random_uuid(), 'host' || n, n, '0.1.0', 4, now() + interval '1 day',
           CASE WHEN n %% 2 = 0 THEN 'jobs' ELSE 'tasks' END
      FROM generate_series(1, 6) AS n;
    CREATE TEMP TABLE job AS
    SELECT n, gen_random_uuid() AS id,
           CASE WHEN n <= 10 THEN 'processing' WHEN n <= 20 THEN 'paused'
                WHEN n <= %(sources)s / 2 THEN 'pending' WHEN n %% 50 = 0 THEN 'failed'
                WHEN n %% 70 = 0 THEN 'cancelled' ELSE 'completed' END::job_status AS status,
           now() - CASE WHEN n <= 1000 THEN interval '2 hours' ELSE n * interval '5 minutes' END
               AS created,
           CASE WHEN n <= 10 THEN %(pages)s / 20 ELSE %(pages)s / 2 / %(jobs)s END AS pages
      FROM generate_series(1, %(jobs)s) AS n;
    INSERT INTO crawl_jobs (id, kind, payload, priority, status, worker_id, lease,
                            progress_percentage, created_at, started_at, completed_at,
                            last_heartbeat, error_message, stop_reason, source_id, user_id)
    SELECT id, 'crawl',
           jsonb_build_object('urls', jsonb_build_array('https://site' || s || '.example/')),
           n %% 10, status, CASE WHEN n <= 10 THEN gen_random_uuid() END, 1,
           CASE WHEN status = 'completed' THEN 100 ELSE n %% 90 END, created,
           CASE WHEN status <> 'pending' THEN created END,
           CASE WHEN status IN ('completed', 'failed', 'cancelled')
                THEN created + interval '4 minutes' END,
           CASE WHEN n <= 10 THEN now() + interval '1 day' END,
           CASE WHEN status = 'failed' THEN 'the site did not answer' END,
           CASE WHEN status = 'completed' THEN 'finished' END,
           'site' || s,
           CASE WHEN n %% 10 = 0 THEN %(owner)s::uuid END
      FROM job, LATERAL (SELECT n %% %(sources)s AS s) AS named;
    INSERT INTO crawl_states (job_id, total_processed, total_pending, discovered, fetched, failed,
                              bytes_fetched, seconds)
    SELECT id, pages, waiting, pages + waiting, pages - pages / 20, pages / 20,
           pages * 40000, 200
      FROM job, LATERAL (SELECT CASE WHEN n <= 2000 THEN 500 ELSE 0 END AS waiting) AS w;
    INSERT INTO job_events (job_id, at, move, from_status, to_status, actor, lease)
    SELECT id, created + step * interval '1 minute',
           (array['enqueue', 'claim', 'complete'])[step],
           (array[NULL, 'pending', 'processing']::job_status[])[step],
           (array['pending', 'processing', 'completed']::job_status[])[step], 'bench', 1
      FROM job, generate_series(1, 3) AS step
     WHERE step = 1 OR n > 20
"""
_PAGES: LiteralString = """
    INSERT INTO crawl_visited (job_id, url_hash, url, outcome, reason, http_status, depth, via,
                               attempts, content_type, title, size, duration_ms, settled_at,
                               content_hash)
    SELECT j.id, substr(sha256(p::text::bytea), 1, 16),
           'https://site' || j.n || '.example/page/' || p,
           CASE WHEN p %% 20 = 0 THEN 'failed' ELSE 'fetched' END,
           CASE WHEN p %% 20 = 0
                THEN (array['timeout', 'http_500', 'refused'])[1 + p / 20 %% 3] END,
           CASE WHEN p %% 20 = 0 THEN 500 ELSE 200 END, p %% 6, 'link', 1,
           'text/html', 'Page ' || p, 40000, 120,
           CASE WHEN j.n <= 10 THEN now() - (p %% 7200) * interval '1 second' ELSE j.created END,
           CASE WHEN p %% 20 <> 0 THEN sha256(p::text::bytea) END
      FROM generate_series(1, %(pages)s) AS p
      JOIN job AS j ON j.n = CASE WHEN p %% 2 = 0 THEN 1 + p / 2 %% 10
                                  ELSE 11 + p / 2 %% (%(jobs)s - 10) END
"""
_SOURCES: LiteralString = """
    INSERT INTO sources (id, base_url, kind, payload, generations, text_config, user_id)
    SELECT 'site' || n, 'https://site' || n || '.example/', 'crawl', '{}', 3, 'english',
           CASE WHEN n %% 10 = 0 THEN %(owner)s::uuid END
      FROM generate_series(0, %(sources)s - 1) AS n;
    INSERT INTO generations (source_id, number, state, pages, added, published_at, note)
    SELECT s.id, n, CASE WHEN n = 3 THEN 'published' ELSE 'retired' END, 100, 10, now(),
           CASE WHEN s.number %% 500 = 0 AND n = 1 THEN 'it has fewer pages' END
      FROM sources s, generate_series(1, 3) AS n ORDER BY s.number, n;
    UPDATE sources s SET published_generation = g.id
      FROM generations g WHERE g.source_id = s.id AND g.state = 'published';
    CREATE TEMP TABLE document AS
    SELECT n, s.id AS source, s.published_generation AS generation, '/guide/' || n AS path,
           'https://' || s.id || '.example/guide/' || n AS url,
           'Page ' || n || ' of ' || s.id AS title,
           'How to set up ' || (array['a proxy', 'a crawl', 'a worker', 'a key'])[1 + n %% 4]
               || ' on ' || s.id || ', step ' || n AS content
      FROM generate_series(1, %(sources)s * 25) AS n
      JOIN sources s ON s.id = 'site' || n %% %(sources)s;
    INSERT INTO documents (id, source_id, url_hash, content_hash, extractor_version, url, path,
                           title, language)
    OVERRIDING SYSTEM VALUE
    SELECT n, source, substr(sha256(url::bytea), 1, 16), sha256(url::bytea), '1', url, path,
           title, 'en'
      FROM document;
    INSERT INTO generation_documents (generation_id, url_hash, document_id, fetched_at)
    SELECT generation - kept, substr(sha256(url::bytea), 1, 16), n, now()
      FROM document, generate_series(0, 1) AS kept
     WHERE kept = 0 OR n %% 10 <> 0;
    INSERT INTO sections (id, document_id, heading, level, content, position)
    SELECT gen_random_uuid(), n, title, 1, content, 0 FROM document;
    INSERT INTO section_search (document_id, position, head_tsv, tsv)
    SELECT n, 0, to_tsvector('english', title), to_tsvector('english', content) FROM document
"""
_TASKS: LiteralString = """
    INSERT INTO domains (domain_name, base_url, blocked_until, slow_delay)
    SELECT 'shop' || n || '.example', 'https://shop' || n || '.example/',
           CASE WHEN n %% 100 = 0 THEN now() + interval '1 day' END,
           CASE WHEN n %% 100 = 0 THEN 30 ELSE 0 END
      FROM generate_series(1, %(domains)s) AS n;
    INSERT INTO crawl_tasks (domain_id, url, url_hash, status, priority, scheduled_at,
                             completed_at, next_crawl_at, created_at, error_kind, error_message)
    SELECT 1 + n %% %(domains)s, url, sha256(url::bytea),
           CASE WHEN n %% 20 = 0 THEN 'pending' WHEN n %% 50 = 1 THEN 'failed'
                WHEN n %% 1000 = 2 THEN 'queued' ELSE 'completed' END,
           1 + n %% 10, now() - interval '1 day', now() - interval '1 day',
           now() + n %% 86400 * interval '1 second',
           now() - (%(products)s - n) * interval '20 seconds',
           CASE WHEN n %% 50 = 1 THEN 'timeout' END,
           CASE WHEN n %% 50 = 1 THEN 'no answer within 30 s' END
      FROM generate_series(1, %(products)s) AS n,
           LATERAL (SELECT 'https://shop' || 1 + n %% %(domains)s || '.example/product/' || n)
               AS u (url)
"""
_PRODUCTS: LiteralString = """
    INSERT INTO products (domain_id, crawl_task_id, url, url_hash, product_name, description,
                          price, currency, availability, rating, review_count, brand, category,
                          sku, content_hash, problems, parser, parser_version, language, tsv,
                          created_at, updated_at, last_seen_at)
    SELECT 1 + n %% %(domains)s, n, url, sha256(url::bytea), name,
           name || ', made with care and sent the same day',
           (300 + hashint4(n) & 65535) / 100.0, 'EUR',
           CASE WHEN n %% 10 = 0 THEN 'out_of_stock' ELSE 'in_stock' END,
           2 + n %% 30 / 10.0, n %% 2000, 'Brand ' || n %% 500,
           'Home > ' || words[1 + n %% 8], 'SKU-' || n, sha256(n::text::bytea),
           CASE WHEN n %% 100 = 0 THEN %(problems)s::jsonb ELSE '[]' END,
           'generic', '1', 'en', to_tsvector('simple', name),
           now() - (%(products)s - n) * interval '20 seconds', now() - n %% 86400 * interval '1 s',
           now()
      FROM generate_series(1, %(products)s) AS n,
           LATERAL (SELECT 'https://shop' || 1 + n %% %(domains)s || '.example/product/' || n)
               AS u (url),
           LATERAL (SELECT array['lamp', 'chair', 'table', 'shirt', 'boot', 'mug', 'bag', 'shoe'])
               AS w (words),
           LATERAL (SELECT (array['Red', 'Blue', 'Green', 'Black', 'Brass', 'Oak'])[1 + n / 7 %% 6]
                           || ' ' || words[1 + n %% 8] || ' ' || n) AS named (name)
"""
_PRICES: LiteralString = """
    INSERT INTO price_history (product_id, price, currency, availability, recorded_at)
    SELECT 1 + n %% %(products)s, (300 + hashint4(n) & 65535) / 100.0, 'EUR', 'in_stock',
           now() - (%(products)s * 3 / 2 - n) * interval '14 seconds'
      FROM generate_series(1, %(products)s * 3 / 2) AS n
"""
_IMAGES: LiteralString = """
    INSERT INTO images (product_id, image_url, url_hash, status)
    SELECT n, 'https://cdn.example/' || n || '.jpg', sha256(n::text::bytea),
           CASE WHEN n %% 20 = 0 THEN 'pending' ELSE 'refused' END
      FROM generate_series(1, %(products)s) AS n
"""
_TRACES: LiteralString = """
    INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome, http_status,
                               finished_at, duration_ms)
    SELECT n, 1 + n %% %(domains)s, 'download', 1, 1, 'ok', 200,
           now() - n * interval '1 second', 120
      FROM generate_series(1, %(products)s / 2) AS n;
    INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                            error_message, message_key, url, occurred_at)
    SELECT n, 1 + n %% %(domains)s, 'download',
           (array['FetchFailed', 'ParseFailed', 'TimedOut'])[1 + n %% 3],
           (array['connection', 'parse', 'timeout'])[1 + n %% 3],
           'no answer from host ' || n %% 40, 'no answer from host #',
           'https://shop' || 1 + n %% %(domains)s || '.example/product/' || n,
           now() - (%(products)s / 10 - n) * interval '6 seconds'
      FROM generate_series(1, %(products)s / 10) AS n;
    INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                              error_message, message_key, attempts, died_at)
    SELECT n, 1 + n %% %(domains)s, 'https://shop1.example/product/' || n, 'download',
           'TimedOut', (array['connection', 'timeout'])[1 + n %% 2], 'no answer', 'no answer', 4,
           now() - n * interval '1 minute'
      FROM generate_series(1, %(products)s / 50) AS n;
    INSERT INTO extractions (task_id, product_id, domain_id, url, parser, parser_version, outcome,
                             confidence, created_at)
    SELECT n, n, 1 + n %% %(domains)s, 'https://shop1.example/product/' || n, 'generic',
           '1', CASE WHEN n %% 30 = 0 THEN 'failed' ELSE 'ok' END, 0.9, now() - n * interval '1 s'
      FROM generate_series(1, %(products)s / 5) AS n;
    INSERT INTO parse_rates (domain_id, parser, parser_version, role, day, pages, good)
    SELECT d, 'generic', '1', 'active', current_date - day, 1000, 990
      FROM generate_series(1, %(domains)s) AS d, generate_series(0, 29) AS day;
    INSERT INTO catalog_events (kind, product_id, domain_id, payload, occurred_at)
    SELECT (array['product.added', 'product.price_changed', 'product.availability_changed'])
               [1 + n %% 3],
           n, 1 + n %% %(domains)s, '{"price": "3.00"}',
           now() - (%(products)s / 5 - n) * interval '5 seconds'
      FROM generate_series(1, %(products)s / 5) AS n;
    INSERT INTO catalog_events (kind, payload)
    VALUES ('catalog.audit', jsonb_build_object('at', '2026-01-01T00:00:00Z', 'seconds', 1,
                                                'checks', 9, 'findings', jsonb_build_array()));
    INSERT INTO webhooks (url, secret) SELECT 'https://hooks.example/' || n, 'x'
      FROM generate_series(1, 20) AS n;
    INSERT INTO outbox (topic, ref_id, lane, sent_at)
    SELECT 'webhooks', n, 1 + n %% 20, CASE WHEN n %% 100 <> 0 THEN now() END
      FROM generate_series(1, %(products)s / 20) AS n;
    INSERT INTO proxies (proxy_url, proxy_port) SELECT 'proxy' || n || '.example', 3128
      FROM generate_series(1, 200) AS n
"""
_PARTS: tuple[tuple[str, LiteralString], ...] = (
    ("jobs", _JOBS),
    ("pages", _PAGES),
    ("sources", _SOURCES),
    ("tasks", _TASKS),
    ("products", _PRODUCTS),
    ("prices", _PRICES),
    ("images", _IMAGES),
    ("traces", _TRACES),
)
# for this many rows, building an index afterwards is much faster than maintaining it
_BUILT_AFTERWARDS = (
    "crawl_jobs", "job_events", "crawl_visited", "crawl_tasks", "products", "price_history",
    "images", "task_attempts", "error_logs", "extractions", "catalog_events",
)  # fmt: skip


def load(url: str, sizes: Sizes, owner: str) -> float:
    """Fill an empty database; `owner` has every tenth job and source. Return the seconds."""
    began = time.perf_counter()
    values = {**sizes.as_values(), "owner": owner, "problems": _PROBLEMS}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET maintenance_work_mem = '512MB'")
        # the rows are consistent: skip the foreign key checks
        connection.execute("SET session_replication_role = replica")
        with _without_indexes(connection):
            for name, statements in _PARTS:
                _run(connection, name, statements, values)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
    return time.perf_counter() - began


def _run(
    connection: Connection, name: str, statements: LiteralString, values: dict[str, Any]
) -> None:
    began = time.perf_counter()
    # the client inserts the values, because only one statement can be prepared at a time
    psycopg.ClientCursor(connection).execute(statements, values)
    print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)


@contextmanager
def _without_indexes(connection: Connection) -> Iterator[None]:
    found = connection.execute(
        """
        SELECT indexname, indexdef
          FROM pg_indexes
         WHERE tablename = ANY (%s)
           AND indexname NOT IN (SELECT conname FROM pg_constraint)
        """,
        (list(_BUILT_AFTERWARDS),),
    ).fetchall()
    for name, _ in found:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    for name, definition in found:
        _run(connection, name, definition, {})
