"""Events, the audit and the explanation of a URL: what they show, to whom, and in which words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from forager.access.caller import Scope
from forager.crawl.explain.outlook import CheckAnswer, outlook
from forager.crawl.options import CrawlOptions
from forager.db.database import Database
from forager.db.ids import new_id
from forager.events.event import EventKind, EventRow, NewEvent
from forager.events.service import record_events
from forager.extract.urls import NormalizedUrl
from forager.fetch.robots.cache import CachedRobots
from forager.fetch.robots.store import upsert_robots
from forager.jobs import history as timeline
from forager.jobs.history import list_moves
from forager.jobs.job import NewJob, TimelineRow
from forager.jobs.queue import Queue
from forager.jobs.workers import Registration
from forager.products.audit import audit_catalog
from forager.secrets import Vault
from forager.settings import Settings
from forager.web.event_text import summary_of
from forager.web.formats import actor, event_kind, sentence
from forager.webhooks.service import NewWebhook, Webhooks
from products.rows import add_product, insert_domain
from support.keys import make_key
from support.sql import execute
from tasks.tasks_at_hand import make_domain, make_task
from web.visitor import Visitor

HOSTILE = '"><script>alert(1)</script>'
OWNER = UUID("00000000-0000-7000-8000-0000000000aa")
URL = "https://docs.example.org/guide"
AGENT = "Forager/1.0"


def event(kind: str, payload: dict[str, Any]) -> EventRow:
    return EventRow(1, kind, None, None, None, None, payload, datetime.now(UTC))


# --- events ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("product.added", {"price": "9.5", "currency": "EUR", "availability": "in_stock"},
         "EUR\N{NO-BREAK SPACE}9.50, in stock"),
        ("product.added", {}, ""),
        ("product.price_changed", {"old": "10", "new": "9", "currency": "EUR", "percent": -10},
         "EUR\N{NO-BREAK SPACE}10.00 → EUR\N{NO-BREAK SPACE}9.00 (-10 %)"),
        ("product.price_changed",
         {"old": "10", "old_currency": "USD", "new": None, "currency": "EUR", "percent": None},
         "USD\N{NO-BREAK SPACE}10.00 → no price"),
        ("product.price_changed", {"old": "much", "new": "9"}, "much → 9.00"),
        ("product.alert",
         {"rule": {"kind": "back_in_stock"}, "old": "9", "new": "9.00", "percent": 0},
         "back in stock: 9.00"),
        ("product.availability_changed", {"old": None, "new": "out_of_stock"},
         "unknown → out of stock"),
        ("parser.degraded", {"recent_pages": 100, "recent_rate": 0.4, "week_rate": 0.95},
         "40 % of the newest 100 pages parsed without problems, 95 % before"),
        ("catalog.audit", {"checks": 12, "findings": [{}]}, "12 checks, 1 finding"),
        ("of.the_future", {"what": "ever"}, ""),
    ],
)  # fmt: skip
def test_events_are_described_in_one_line(kind: str, payload: dict[str, Any], words: str) -> None:
    assert summary_of(event(kind, payload)) == words


def test_names_are_made_readable() -> None:
    assert event_kind("product.price_changed") == "price changed"
    assert sentence("no rule matches") == "No rule matches"
    assert sentence("timeout: no answer") == "Timeout: no answer"
    for text in (
        "shop.example is disabled",
        "localhost:8101 has no alarm",
        "max_pages must be a number",
        "docs@2 has several versions",
        "https://docs.example.org/ is not a page",
    ):
        assert sentence(text) == text
    assert actor(f"worker {OWNER}") == "worker …0000000000aa"
    assert actor("somebody else") == "somebody else"


async def test_events_are_listed_and_filtered(visitor: Visitor, database: Database) -> None:
    assert "No events yet" in (await visitor.get("/events")).text
    product_id = await add_product(database, 1)
    async with database.transaction() as connection:
        domain_id = await insert_domain(connection)
        await record_events(
            connection,
            [
                NewEvent(EventKind.PRODUCT_ADDED, product_id, domain_id, {"name": HOSTILE}),
                NewEvent(EventKind.PARSER_DEGRADED, None, domain_id, {"recent_pages": 100}),
            ],
        )
    page = (await visitor.get("/events")).text
    assert f'<a href="/products/{product_id}">' in page
    assert "<script>alert" not in page
    assert "2 events" in page
    only = (await visitor.get("/events?kind=parser.degraded&domain=shop.example")).text
    assert "1 event" in only
    assert f"/products/{product_id}" not in only
    for wrong in ("kind=nothing", "domain=no.example", f"kind={HOSTILE}", "product=x", "cursor=x"):
        answer = await visitor.get(f"/events?{wrong}")
        assert answer.status == 200
        assert 'class="notice error"' in answer.text
        assert "<script>alert" not in answer.text


async def test_a_message_of_a_webhook_shows_its_payload(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    webhooks = Webhooks(database, Vault(web_settings))
    webhook_id = (await webhooks.add(NewWebhook("https://receiver.example/"))).webhook.id
    async with database.transaction() as connection:
        domain_id = await insert_domain(connection)
        await record_events(
            connection, [NewEvent(EventKind.PARSER_DEGRADED, None, domain_id, {"text": HOSTILE})]
        )
    [message] = (await webhooks.deliveries(webhook_id)).items
    where = f"/webhooks/{webhook_id}/messages/{message.id}"
    assert where in (await visitor.get(f"/webhooks/{webhook_id}")).text
    shown = (await visitor.get(where)).text
    assert all(words in shown for words in ("parser.degraded", "Not sent yet", "&#34;data&#34;"))
    assert "<script>alert" not in shown
    assert (await visitor.get(f"{where}999")).status == 404


async def test_settings_are_shown_with_their_origin_and_without_secrets(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORAGER_MAX_RETRIES", "3")
    page = (await visitor.get("/settings?changed=yes")).text
    assert 'id="s-max_retries"' in page
    assert "environment" in page
    assert 'id="s-stall_limit"' in (await visitor.get("/settings")).text


async def test_a_worker_shows_its_jobs_and_tasks(
    visitor: Visitor, database: Database, queue: Queue
) -> None:
    worker = new_id()
    await queue.enqueue(NewJob(kind="selftest", source_id="busy.example"))
    await Registration(database, worker, capacity=1).renew()
    assert ">none</span>" in (await visitor.get("/workers")).text
    [job] = await queue.claim(worker, kinds=["selftest"])
    page = (await visitor.get("/workers")).text
    assert f'<a href="/jobs/{job.id}">busy.example</a>' in page


async def test_moves_of_jobs_are_listed_and_only_ones_own(
    visitor: Visitor, database: Database, queue: Queue
) -> None:
    own = (await queue.enqueue(NewJob(kind="selftest", source_id="own", user_id=OWNER))).job
    other = (await queue.enqueue(NewJob(kind="selftest", source_id=HOSTILE))).job
    await queue.cancel(own.id, reason="no longer wanted")
    page = (await visitor.get("/events/jobs")).text
    assert str(other.id) in page
    assert "no longer wanted" in page
    assert "<script>alert" not in page
    cancelled = (await visitor.get("/events/jobs?kind=cancel")).text
    assert str(own.id) in cancelled
    assert str(other.id) not in cancelled
    key = await make_key(database, "reader", scope=Scope.READ, user_id=OWNER)
    await visitor.sign_in(key.text)
    seen = (await visitor.get("/events/jobs")).text
    assert str(own.id) in seen
    assert str(other.id) not in seen


async def test_a_rare_move_is_looked_for_piece_by_piece(
    database: Database, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "MOVES_SCANNED", 2)
    first = (await queue.enqueue(NewJob(kind="selftest"))).job
    await queue.cancel(first.id)
    for _ in range(3):
        await queue.enqueue(NewJob(kind="selftest"))
    cursor: str | None = None
    found: list[TimelineRow] = []
    pages = 0
    while pages == 0 or cursor is not None:
        page = await list_moves(database, move="cancel", cursor=cursor)
        cursor, found, pages = page.next_cursor, [*found, *page.items], pages + 1
    assert [each.job_id for each in found] == [first.id]
    assert pages == 3
    newest = await list_moves(database, limit=1)
    assert newest.next_cursor == str(newest.items[0].id)


# --- the audit ---------------------------------------------------------------------------------


async def test_an_audit_is_run_and_shown(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    assert "No audit yet" in (await visitor.get("/audit")).text
    await add_product(database, 1)
    done = await visitor.act("/audit")
    assert "No problems found" in done.text
    task_id = await make_task(
        database, await make_domain(database, "lost.example"), status="completed"
    )
    await audit_catalog(database, web_settings)
    page = (await visitor.get("/audit")).text
    assert "Completed tasks that never become due" in page
    assert f'<a href="/tasks/{task_id}">{task_id}</a>' in page


async def test_a_read_only_key_cannot_run_an_audit(visitor: Visitor, database: Database) -> None:
    key = await make_key(database, "reader", scope=Scope.READ)
    await visitor.sign_in(key.text)
    assert "Run now" not in (await visitor.get("/audit")).text
    assert (await visitor.act("/audit")).status == 403


# --- explain -----------------------------------------------------------------------------------


async def put_robots(database: Database, body: bytes, *, status: int = 200) -> None:
    now = datetime.now(UTC)
    kept = CachedRobots(body, now, now.replace(year=now.year + 1, day=1), status)
    async with database.connection() as connection:
        await upsert_robots(connection, "https://docs.example.org", kept)


async def look(database: Database, url: str = URL, **options: Any) -> tuple[CheckAnswer, str]:
    asked = CrawlOptions(urls=("https://docs.example.org/",), **options) if options else None
    found = await outlook(database, NormalizedUrl(url), agent=AGENT, options=asked)
    return found.answer, found.message


async def test_what_would_happen_depends_on_robots(database: Database) -> None:
    answer, words = await look(database)
    assert answer is CheckAnswer.UNKNOWN
    assert "not known yet" in words
    await put_robots(database, b"User-agent: *\nDisallow: /guide\nCrawl-delay: 7\n")
    assert await look(database) == (
        CheckAnswer.NO,
        "It would not be fetched: line 2 of robots.txt: Disallow: /guide.",
    )
    assert await look(database, ignore_robots=True) == (CheckAnswer.YES, "It would be fetched.")
    assert await look(database, "https://docs.example.org/a") == (
        CheckAnswer.YES,
        "It would be fetched.",
    )
    found = await outlook(
        database, NormalizedUrl("https://docs.example.org/a"), agent=AGENT, options=None
    )
    assert found.checks[-1].message == "one request every 7 s; 0 of 5 connections are in use"
    await put_robots(database, b"", status=503)
    answer, words = await look(database)
    assert (answer, "robots.txt answered 503" in words) == (CheckAnswer.LATER, True)


async def test_what_would_happen_depends_on_the_host_and_the_scope(database: Database) -> None:
    await put_robots(database, b"")
    answer, words = await look(database, exclude=("/guide*",))
    assert answer is CheckAnswer.NO
    assert "/guide*" in words
    await make_domain(database, "docs.example.org", blocked_until=datetime(2999, 1, 1, tzinfo=UTC))
    answer, words = await look(database)
    assert answer is CheckAnswer.LATER
    limited = "It would have to wait: rate-limited by docs.example.org (Retry-After), next request"
    assert words.startswith(f"{limited} in ")
    assert words.endswith(" h.")
    await execute(database, "UPDATE domains SET is_active = false")
    assert (await look(database))[0] is CheckAnswer.NO


@pytest.mark.parametrize("url", ["http://127.0.0.1:80/", "http://[::1]/", "http://localhost/"])
async def test_a_private_address_would_not_be_fetched(database: Database, url: str) -> None:
    answer, words = await look(database, url)
    assert answer is CheckAnswer.NO
    assert "may not be crawled" in words


async def test_a_url_is_explained_to_a_person(visitor: Visitor, queue: Queue) -> None:
    assert "Enter a URL" in (await visitor.get("/explain")).text
    await queue.enqueue(
        NewJob(kind="crawl", payload={"urls": ["https://docs.example.org/"], "exclude": ["/old/*"]})
    )
    page = (await visitor.get("/explain", params={"url": "DOCS.example.org/old/a#b"})).text
    assert "never seen" in page
    assert "https://docs.example.org/old/a" in page
    assert "Not tracked" in page
    assert page.count("/old/*") >= 2
    for wrong in ("ftp://x.example/", HOSTILE, "http://", "\0"):
        refused = await visitor.get("/explain", params={"url": wrong})
        assert refused.status == 200
        assert "<script>alert" not in refused.text


async def test_the_job_of_another_owner_explains_nothing(
    visitor: Visitor, database: Database, queue: Queue
) -> None:
    job = (await queue.enqueue(NewJob(kind="crawl", payload={"urls": [URL]}))).job
    key = await make_key(database, "reader", scope=Scope.READ, user_id=OWNER)
    await visitor.sign_in(key.text)
    page = (await visitor.get("/explain", params={"url": URL, "job": str(job.id)})).text
    assert f"there is no job {job.id}" in page.lower()
    assert f'href="/jobs/{job.id}"' not in page
    assert f'href="/jobs/{job.id}"' not in (await visitor.get("/explain", params={"url": URL})).text


async def test_errors_of_crawls_and_tasks_are_on_one_page(
    visitor: Visitor, database: Database, queue: Queue
) -> None:
    job = (await queue.enqueue(NewJob(kind="crawl", payload={"urls": ["https://a.example/"]}))).job
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO crawl_states (job_id, discovered, failed, reasons)"
            ' VALUES (%s, 3, 3, \'{"failed": {"http_503": 3}}\')',
            (job.id,),
        )
        await connection.execute(
            "INSERT INTO error_logs (stage, error_type, error_kind, error_message, message_key)"
            " SELECT 'crawl', 'http', 'http_server', 'down', 'down' FROM generate_series(1, 5)"
        )
    page = (await visitor.get("/errors?hours=168")).text
    assert f"/jobs/{job.id}/pages?outcome=failed&amp;reason=http_503" in page
    assert "Task errors over time: errors now 5, at most 5" in page
    assert "/retry-failed" not in page  # the job has not finished
    await queue.cancel(job.id)
    assert (await visitor.get("/errors?domain=no.example&hours=1")).status == 200
