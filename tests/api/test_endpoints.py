"""Each endpoint does what the command of the same name does."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from typing import Any
from uuid import UUID

from api.client import Api
from built_site import SOURCE, Crawls
from forager.api.models.crawls import CrawlOrder
from forager.crawl.options import CrawlOptions
from forager.db.database import Database
from forager.fetch.proxies.costs import UsageLog
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from support.sql import execute

# SQL, HTML, control characters, other directions and other alphabets: all of it is only text
NASTY = "'; DROP TABLE crawl_jobs; -- <img src=x onerror=alert(1)> {{7*7}} \x1b[31m \u202e 🦓 %s"
CRAWL = "/api/v1/crawls"


def test_an_order_has_every_option_of_a_crawl() -> None:
    own = {"source", "priority"}
    hidden = {
        "sealed",
        "granted_pages",
        "granted_on",
        "spent_before",
    }  # made by Forager, never given
    assert CrawlOrder.model_fields.keys() - own == CrawlOptions.model_fields.keys() - hidden
    for name, field in CrawlOptions.model_fields.items():
        if name not in hidden and not field.is_required():
            given = CrawlOrder(urls=["https://a.example/"]).options()
            assert getattr(given, name) == field.get_default(call_default_factory=True)


async def test_a_crawl_is_asked_for_with_all_its_options(api: Api, queue: Queue) -> None:
    order = {
        "urls": ["docs.example.org/a", "https://docs.example.org/b"],
        "source": "docs",
        "priority": 7,
        "strategy": "list",
        "scope": "prefix",
        "include": ["/a*"],
        "max_pages": 5,
        "headers": {"Authorization": "Bearer hidden", "Accept": "text/html"},
        "user_agent": NASTY.replace("\x1b", ""),
    }
    asked = await api.post(CRAWL, order)
    assert asked.status == 202
    assert asked.json == asked.json | {"source": "docs", "status": "pending", "created": True}
    assert asked.json["job_id"] == asked.json["progress_id"]
    job = await queue.get(UUID(asked.json["job_id"]))
    assert (job.priority, job.payload["urls"][0]) == (7, "https://docs.example.org/a")
    shown = await api.get(f"/api/v1/jobs/{job.id}")
    assert shown.json["payload"]["headers"]["Authorization"] == "***"
    assert b"hidden" not in shown.body
    assert "sealed" not in shown.json["payload"]
    progress = (await api.get(f"/api/v1/crawls/{job.id}")).json
    assert (progress["status"], progress["progress_percentage"]) == ("pending", 0)
    assert progress["ledger"]["discovered"] == 0
    assert progress["eta_seconds"] is None


async def test_progress_has_pace_and_time_left(api: Api, crawls: Crawls) -> None:
    crawl = await crawls.start()
    await crawl.ledger(fetched=30, reasons={"timeout": 10})
    await execute(
        crawls.database,
        """
        UPDATE crawl_states
           SET discovered = discovered + 80, total_pending = 80, seconds = 10, pace = 4,
               waits_for = 'rate-limited by docs.example.org',
               waits_until = now() + interval '1 hour', reported_at = now()
        RETURNING 1
        """,
    )
    progress = (await api.get(f"/api/v1/crawls/{crawl.context.job.id}")).json
    assert (progress["pages_per_second"], progress["eta_seconds"]) == (4.0, 20.0)
    assert progress["waiting"].startswith("rate-limited by docs.example.org, next request in ")
    ledger = progress["ledger"]
    assert ledger["discovered"] == ledger["fetched"] + ledger["failed"] + ledger["pending"]


async def test_jobs_are_listed_moved_and_pruned(api: Api, queue: Queue) -> None:
    job = (await api.crawl())["job_id"]
    await queue.enqueue(NewJob(kind="selftest"))
    for query, count in (("", 2), ("?kind=crawl", 1), ("?source=docs.example.org", 1),
                         ("?status=paused&status=failed", 0)):  # fmt: skip
        assert len((await api.get(f"/api/v1/jobs{query}")).json["items"]) == count
    paused = await api.post(f"/api/v1/jobs/{job}/pause", {"reason": NASTY})
    assert paused.json["status"] == "paused"
    assert (await api.post(f"/api/v1/jobs/{job}/resume")).json["status"] == "pending"
    detail = (await api.get(f"/api/v1/jobs/{job}")).json
    assert [event["move"] for event in detail["last_events"]] == ["enqueue", "pause", "resume"]
    assert detail["last_events"][1]["reason"] == NASTY
    cancelled = await api.post(f"/api/v1/jobs/{job}/cancel")
    assert cancelled.json["stop_reason"] == "cancelled"
    work = (await api.get("/api/v1/jobs/work")).json
    assert (work["counts"]["pending"], work["counts"]["cancelled"]) == (1, 1)
    assert work["summary"]["message"] == "1 waiting for a worker"
    for query, count in (
        ("activity=waiting-for-worker", 1),
        ("activity=stalled", 0),
        ("host=Nowhere.example", 0),
    ):
        assert len((await api.get(f"/api/v1/jobs?{query}")).json["items"]) == count
    assert (await api.post("/api/v1/jobs/prune", {"older_than_days": 0})).json == {"deleted": 1}
    assert (await api.get(f"/api/v1/jobs/{job}")).status == 404


async def test_many_jobs_are_moved_each_by_itself(api: Api, queue: Queue) -> None:
    jobs = await queue.enqueue_many([NewJob(kind="selftest") for _ in range(3)])
    ids = [str(job.id) for job in jobs]
    await queue.cancel(jobs[1].id)
    missing = "0199a5c2-8a00-7000-8000-000000000000"
    order = {"action": "pause", "ids": [*ids, missing, ids[0]]}
    done = (await api.post("/api/v1/jobs/bulk", order)).json
    assert (done["moved"], done["failed"]) == (2, 2)
    assert [item["id"] for item in done["items"]] == [*ids, missing]
    problems = [item["problem"] and item["problem"]["status"] for item in done["items"]]
    assert problems == [None, 409, None, 404]
    too_many = {"action": "pause", "ids": [missing] * 1001}
    assert (await api.post("/api/v1/jobs/bulk", too_many)).status == 422


async def test_pages_by_outcome(api: Api, crawls: Crawls, database: Database) -> None:
    crawl = await crawls.start()
    job_id = crawl.context.job.id
    for n in range(12):
        await execute(
            database,
            """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, reason, detail, depth, via)
            VALUES (%s, %s, %s, %s, %s, %s, 1, 'link') RETURNING 1
            """,
            job_id,
            n.to_bytes(16, "big"),
            f"https://docs.example.org/{n}",
            "failed" if n % 3 == 0 else "fetched",
            "timeout" if n % 3 == 0 else None,
            NASTY,
        )
    path = f"/api/v1/jobs/{job_id}/pages?outcome=failed&limit=3"
    first = (await api.get(path)).json
    rest = (await api.get(f"{path}&cursor={first['next_cursor']}")).json
    assert [len(first["items"]), len(rest["items"]), rest["next_cursor"]] == [3, 1, None]
    assert first["items"][0]["detail"] == NASTY
    both = await api.get(f"/api/v1/jobs/{job_id}/pages?outcome=failed&outcome=fetched")
    assert len(both.json["items"]) == 12
    assert (await api.get(f"/api/v1/jobs/{job_id}/pages?cursor=AAAA")).status == 422
    explained = await api.get(f"/api/v1/explain?url=https://docs.example.org/1&job_id={job_id}")
    assert explained.json["verdict"] == "never seen"


async def test_what_is_held_back_says_so(api: Api, crawls: Crawls) -> None:
    await crawls.crawl({"a": "one", "b": "two"})
    await crawls.crawl({"a": "changed"})
    note = "pages fell from 2 to 1"
    source = (await api.get(f"/api/v1/sources/{SOURCE}")).json
    assert (source["state"], source["held_back_number"], source["held_back_note"]) == (
        "held_back", 2, note
    )  # fmt: skip
    assert source["earlier_number"] is None
    [job, _] = (await api.get("/api/v1/jobs")).json["items"]
    shown = (await api.get(f"/api/v1/jobs/{job['id']}")).json
    for each in (job, shown):
        assert (each["generation"]["state"], each["generation"]["note"]) == ("held_back", note)
    page = (await api.get(f"/api/v1/explain?url=https://{SOURCE}/a")).json["publication"]
    assert (page["state"], page["generation"], page["held_back"]) == ("published", 1, 2)
    assert page["since"] == source["published_at"]
    refused = await api.post(f"/api/v1/sources/{SOURCE}/rollback", {"generation": 2})
    assert (refused.status, note in refused.json["detail"]) == (409, True)


async def test_versions_are_compared(api: Api, crawls: Crawls) -> None:
    for version, text in (("1", "one"), ("2", "two")):
        crawls.source = f"tool@{version}"
        await crawls.crawl({"a": "same", "b": text})
    diff = (await api.get("/api/v1/sources/tool@2/diff?against=1&page=/b&section=details")).json
    assert (diff["source"], diff["against"]) == ("tool@2", "tool@1")
    [changed] = diff["changed"]
    assert [section["heading"] for section in changed["sections"]] == ["Details"]
    missing = await api.get("/api/v1/sources/tool@2/diff?against=3")
    assert missing.status == 404
    assert missing.json["fix"] == "Versions: 1"


async def test_sources_from_the_first_crawl_to_the_last(
    api: Api, crawls: Crawls, queue: Queue
) -> None:
    await crawls.crawl({"a": "one", "b": "two"})
    await crawls.crawl({"a": "one", "b": NASTY.replace("\x1b", ""), "c": "three"})
    source = f"/api/v1/sources/{SOURCE}"
    assert [item["id"] for item in (await api.get("/api/v1/sources")).json["items"]] == [SOURCE]
    shown = (await api.get(source)).json
    assert (shown["published_number"], shown["pages"]) == (2, 3)
    generations = (await api.get(f"{source}/generations?limit=1")).json
    assert [g["number"] for g in generations["items"]] == [2]
    older = await api.get(f"{source}/generations?cursor={generations['next_cursor']}")
    assert [g["state"] for g in older.json["items"]] == ["superseded"]
    diff = (await api.get(f"{source}/diff?sections=true")).json
    assert [page["url"][-1] for page in diff["added"]] == ["c"]
    assert "DROP TABLE" in diff["changed"][0]["sections"][0]["diff"]
    back = await api.post(f"{source}/rollback", {})
    assert (back.json["number"], back.json["state"]) == (1, "published")
    assert (await api.post(f"{source}/publish", {"generation": 2})).json["number"] == 2
    assert (await api.post(f"{source}/publish", {"generation": 9})).status == 404
    timed = await api.send("PUT", f"{source}/schedule", {"every": "1d"})
    assert timed.json["every"] == "1d"
    assert (await api.send("PUT", f"{source}/schedule", {"every": NASTY[:40]})).status == 422
    assert (await api.send("PUT", f"{source}/schedule", {})).status == 422
    ended = await api.send("DELETE", f"{source}/schedule")
    assert ended.json["next_refresh_at"] is None
    limited = await api.send("PATCH", source, {"keep": 3})
    assert (limited.json["keep"], limited.json["max_shrink"]) == (3, 0.2)
    asked = await api.post(f"{source}/refresh")
    assert (asked.status, asked.json["created"]) == (202, True)
    assert (await api.send("DELETE", source)).status == 409
    await queue.cancel(UUID(asked.json["job_id"]))
    assert (await api.send("DELETE", source)).json == {"source": SOURCE}
    assert (await api.get(source)).status == 404


async def test_pages_are_read_and_found(api: Api, crawls: Crawls) -> None:
    await crawls.crawl({"a": "zebra stripes", "b": "the zebra <script>alert(1)</script>"})
    listed = (await api.get(f"/api/v1/documents?source={SOURCE}")).json
    assert [document["path"] for document in listed["items"]] == ["/a", "/b"]
    only = (await api.get(f"/api/v1/documents?source={SOURCE}&path=/b&limit=1")).json
    assert (len(only["items"]), only["next_cursor"]) == (1, None)
    url = f"https://{SOURCE}/b"
    read = await api.get("/api/v1/documents/read", params={"url": url})
    assert "<script>" in read.json["markdown"]
    assert read.headers["Content-Type"] == "application/json"
    part = await api.get("/api/v1/documents/read", params={"url": url, "section": "details"})
    assert [section["heading"] for section in part.json["sections"]] == ["Details"]
    for section in ("nothing", NASTY):
        missing = await api.get("/api/v1/documents/read", params={"url": url, "section": section})
        assert missing.status == 404
    sections = (await api.get(f"/api/v1/sections?source={SOURCE}&path=/a")).json
    assert [section["heading"] for section in sections["items"]] == ["Guide", "Details"]
    assert (await api.get(f"/api/v1/sections?source={SOURCE}&path=/")).status == 404
    hits = (await api.get("/api/v1/search?q=zebra")).json["items"]
    assert {hit["url"].partition("#")[0][-1] for hit in hits} == {"a", "b"}
    start, end = hits[0]["highlights"][0]
    assert hits[0]["snippet"][start:end].lower() == "zebra"
    first = (await api.get("/api/v1/search?q=zebra&limit=1")).json
    second = await api.get(f"/api/v1/search?q=zebra&limit=1&cursor={first['next_cursor']}")
    assert second.json["items"] != first["items"]
    nasty = await api.get("/api/v1/search", params={"q": NASTY, "path": NASTY})
    assert (nasty.status, nasty.json["items"]) == (200, [])


async def test_domains_and_proxies(api: Api) -> None:
    made = await api.post("/api/v1/domains", {"host": "https://Shop.example.org/", "delay": 2.5})
    assert (made.status, made.json["host"]) == (201, "shop.example.org")
    domain = "/api/v1/domains/shop.example.org"
    changed = await api.send("PATCH", domain, {"delay": None, "active": False})
    assert (changed.json["delay"], changed.json["active"]) == (None, False)
    assert (await api.get("/api/v1/domains/www.shop.example.org")).json["host"] == (
        "shop.example.org"
    )
    assert len((await api.get("/api/v1/domains?active=false")).json["items"]) == 1
    await api.post("/api/v1/domains", {"host": "other.example"})
    several = {"hosts": ["*.example.org", "other.example"], "delay": 4}
    changed = (await api.send("PATCH", "/api/v1/domains", several)).json
    assert {each["host"]: each["delay"] for each in changed["items"]} == {
        "shop.example.org": 4, "other.example": 4
    }  # fmt: skip
    assert (
        await api.send("PATCH", "/api/v1/domains", {**several, "hosts": ["*.nowhere"]})
    ).status == 404
    assert (await api.post(f"{domain}/unblock")).json["slow_delay"] == 0
    for host in (NASTY, "..", "a b"):
        assert (await api.post("/api/v1/domains", {"host": host})).status == 422
    secret = {"url": "http://me:hidden@proxy.example.org:3128"}
    added = await api.post("/api/v1/proxies", secret)
    assert (added.status, b"hidden" in added.body) == (201, False)
    proxy = f"/api/v1/proxies/{added.json['id']}"
    listed = await api.get("/api/v1/proxies")
    assert (listed.json["items"][0]["state"], b"hidden" in listed.body) == ("active", False)
    disabled = await api.post(f"{proxy}/disable", {"reason": NASTY})
    assert disabled.json["disabled_reason"] == NASTY
    assert (await api.post(f"{proxy}/enable")).json["state"] == "active"
    assert (await api.post("/api/v1/proxies", {"url": "http://127.0.0.1:1"})).status == 403
    near = await api.post("/api/v1/proxies", {"url": "http://127.0.0.1:1", "allow_private": True})
    tried = await api.post(f"/api/v1/proxies/{near.json['id']}/test")
    assert (tried.json["ok"], tried.json["error"] is None) == (False, False)
    assert (await api.send("DELETE", proxy)).json == {"id": added.json["id"]}
    assert (await api.post(f"{proxy}/test")).status == 404
    assert (await api.get("/api/v1/workers")).json == {"items": [], "next_cursor": None}


async def test_regions_and_costs(api: Api, database: Database) -> None:
    made = await api.post("/api/v1/domains", {"host": "shop.example", "region": "eu"})
    assert (made.status, made.json["region"]) == (201, "eu")
    assert len((await api.get("/api/v1/domains?region=eu")).json["items"]) == 1
    assert (await api.get("/api/v1/domains?region=us")).json["items"] == []
    domain = "/api/v1/domains/shop.example"
    assert (await api.send("PATCH", domain, {"delay": 1})).json["region"] == "eu"
    assert (await api.send("PATCH", domain, {"region": None})).json["region"] is None
    for wrong in ("", "E U", "x" * 33, NASTY):
        assert (await api.send("PATCH", domain, {"region": wrong})).status == 422
    proxy_id = (await api.post("/api/v1/proxies", {"url": "http://proxy.example:1"})).json["id"]
    proxy = f"/api/v1/proxies/{proxy_id}"
    price = {"amount": "0.25", "unit": "request"}
    set_to = (await api.send("PATCH", proxy, {"region": "eu", "cost": price})).json
    assert (set_to["region"], set_to["cost"]) == ("eu", {**price, "currency": "USD"})
    for bad in ({"amount": "-1", "unit": "GB"}, {"amount": "1", "unit": "day"}, {"amount": "1"}):
        assert (await api.send("PATCH", proxy, {"cost": bad})).status == 422
    log = UsageLog(database)
    log.add(proxy_id, "shop.example", 700)
    log.add(proxy_id, "shop.example", 300)
    await log.run_once()
    report = (await api.get("/api/v1/proxies/costs?days=7")).json
    assert report["totals"] == {"USD": "0.50"}
    [line] = report["items"]
    assert (report["count"], report["is_cut"]) == (1, False)
    assert (line["domain"], line["requests"], line["bytes"]) == ("shop.example", 2, 1000)
    assert (line["price"], line["cost"]) == ("0.25 USD/request", "0.50")
    assert (await api.get("/api/v1/proxies/costs?domain=other.example")).json["items"] == []
    for wrong in ("days=0", "days=x", "limit=0", "domain=.."):
        assert (await api.get(f"/api/v1/proxies/costs?{wrong}")).status == 422
    taken = (await api.send("PATCH", proxy, {"cost": None})).json
    assert (taken["region"], taken["cost"]) == ("eu", None)
    assert (await api.send("PATCH", "/api/v1/proxies/999", {"region": "eu"})).status == 404


async def test_the_reference_page(api: Api, document: dict[str, Any]) -> None:
    page = await api.get("/api/docs")
    assert page.status == 200
    assert page.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert b"<script" not in page.body
    text = page.body.decode()
    for part in (
        'Request body: <a href="#schema-CrawlOrder">',
        "<td>max_pages<td>integer or null<td>Stop after this many pages.",
        "Example of 202",
        "<td>429<td><td>Quota exceeded",
        '<h3 id="schema-JobList">',
    ):
        assert part in text
    # every link within the page has a target
    ids = re.findall(r' id="([^"]+)"', text)
    targets = set(ids)
    assert len(ids) == len(targets)
    assert set(re.findall(r'href="#([^"]+)"', text)) <= targets
    commands = [unescape(c) for c in re.findall(r"<pre class=command>(.*?)</pre>", text, re.S)]
    assert len(commands) == sum(map(len, document["paths"].values()))
    for words in map(shlex.split, commands):
        assert words[0] == "curl"
        [target] = [word for word in words if word.startswith(api.address)]
        # a shell or curl would make something else of them
        assert not set(target) & set("{}[]<> ")
        if "-d" in words:
            assert isinstance(json.loads(words[words.index("-d") + 1]), dict)
