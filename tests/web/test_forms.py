"""What the forms of pages do: through HTTP, without a browser."""

from __future__ import annotations

import json
import re
from io import BytesIO
from zipfile import ZipFile

import pytest

from built_site import SOURCE, Crawls, active_site
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.web.routes.jobs import EXPORTS, RunningExport
from support.sql import execute
from web.catalog_rows import HOSTILE
from web.visitor import Visitor


async def test_one_job_and_many_are_moved(visitor: Visitor, queue: Queue) -> None:
    jobs = await queue.enqueue_many([NewJob(kind="selftest") for _ in range(3)])
    await visitor.act(f"/jobs/{jobs[0].id}/move", {"move": "cancel"})
    assert (await queue.get(jobs[0].id)).status is Status.CANCELLED
    token = await visitor.token()
    body = [("csrf", token), ("move", "pause"), *(("id", str(job.id)) for job in jobs)]
    async with visitor.session.post("/jobs/bulk", data=body) as response:
        text = await response.text()
    assert "2 jobs: pause done. 1 job refused" in text
    assert {(await queue.get(job.id)).status for job in jobs[1:]} == {Status.PAUSED}


async def test_an_action_that_is_refused_says_why(visitor: Visitor, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest"))).job
    refused = await visitor.act(f"/jobs/{job.id}/move", {"move": "retry"})
    assert refused.status == 409
    assert "it is pending" in refused.text
    nonsense = await visitor.act(f"/jobs/{job.id}/move", {"move": "<b>"})
    assert nonsense.status == 422
    script = await visitor.act(
        f"/jobs/{job.id}/move", {"move": "retry"}, headers={"HX-Request": "true"}
    )
    assert "it is pending" in script.headers["HX-Trigger"]


async def test_generations_are_compared_published_and_rolled_back(
    visitor: Visitor, crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": "alpha", "b": "beta"})
    await crawls.crawl({"a": "ALPHA", "b": "beta", "c": "gamma"})
    difference = (await visitor.get(f"/sources/{SOURCE}/diff")).text
    assert "Changes from generation 1 to 2" in difference
    difference = (await visitor.get(f"/sources/{SOURCE}/diff?view=lines")).text
    assert '<span class="minus">-<del>alpha</del></span>' in difference
    assert '<span class="plus">+<ins>ALPHA</ins></span>' in difference
    await visitor.act(f"/sources/{SOURCE}/rollback")
    assert await active_site(database) == {"a": "alpha", "b": "beta"}
    await visitor.act(f"/sources/{SOURCE}/publish", {"generation": "2"})
    assert len(await active_site(database)) == 3


async def test_a_source_gets_a_schedule_and_limits(visitor: Visitor, crawls: Crawls) -> None:
    await crawls.crawl({"a": "alpha"})
    await visitor.act(f"/sources/{SOURCE}/schedule", {"every": "12h"})
    await visitor.act(f"/sources/{SOURCE}/limits", {"keep": "9", "max_shrink": "50"})
    page = (await visitor.get(f"/sources/{SOURCE}")).text
    assert "every 12 h" in page
    assert 'name="every" type="text" value="12h"' in page
    assert 'value="9"' in page
    assert 'value="50"' in page
    both = await visitor.act(f"/sources/{SOURCE}/schedule", {"every": "1d", "cron": "0 4 * * *"})
    assert both.status == 422
    wrong = await visitor.act(f"/sources/{SOURCE}/schedule", {"every": "often"})
    assert wrong.status == 422
    assert "Write it as 30s" in wrong.text


async def test_a_crawl_is_started_with_its_limits(visitor: Visitor, queue: Queue) -> None:
    started = await visitor.act(
        "/new-crawl",
        {"urls": "https://docs.example.org/\nhttps://docs.example.org/b", "max_pages": "7",
         "exclude": "/old/*", "strategy": "list"},
    )  # fmt: skip
    assert started.status == 200
    [job] = (await queue.list_jobs()).items
    assert job.payload["max_pages"] == 7
    assert job.payload["exclude"] == ["/old/*"]
    assert len(job.payload["urls"]) == 2
    assert str(job.id) in started.text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"urls": "ftp://example.org"}, "cannot be crawled"),
        ({"urls": "http://127.0.0.1/"}, "allow_private"),
        ({"urls": ""}, 'id="e-urls"'),
        (
            {"urls": "https://a.example", "max_pages": "many"},
            'id="e-max_pages" class="small field-error">Must be a whole number',
        ),
        ({"urls": "https://a.example", "strategy": HOSTILE}, 'id="e-strategy"'),
        ({"urls": "https://a.example", "headers": "no colon"}, 'id="e-headers"'),
    ],
)
async def test_an_impossible_crawl_is_rejected_with_an_explanation(
    visitor: Visitor, fields: dict[str, str], words: str
) -> None:
    refused = await visitor.act("/new-crawl", fields)
    assert refused.status in (403, 422)
    assert words in refused.text
    assert "<script>alert" not in refused.text


async def test_a_refused_address_stays_in_the_form_and_can_be_allowed(
    visitor: Visitor, queue: Queue
) -> None:
    welcome = (await visitor.get("/")).text
    assert "Welcome" in welcome
    assert 'action="/new-crawl"' in welcome
    assert 'name="allow_private"' in welcome
    fields = {"urls": "http://127.0.0.1:8310/docs", "source": "mine", "max_pages": "7"}
    refused = (await visitor.act("/new-crawl", fields)).text
    assert "http://127.0.0.1:8310/docs</textarea>" in refused
    assert 'value="mine"' in refused
    assert 'value="7"' in refused
    await visitor.act("/new-crawl", fields | {"allow_private": "yes"})
    [job] = (await queue.list_jobs()).items
    assert job.source_id == "mine"


async def test_a_proxy_that_does_not_work_is_an_error_and_counted_as_one(visitor: Visitor) -> None:
    fields = {"urls": "http://127.0.0.1:9", "allow_private": "yes"}
    await visitor.act("/proxies", fields)
    page = (await visitor.get("/proxies")).text
    assert "1 proxy\n" in page
    found = re.search(r'action="(/proxies/[^"]+/test)"', page)
    assert found is not None
    tried = await visitor.act(found[1], fields, headers={"HX-Request": "true"})
    notice = json.loads(tried.headers["HX-Trigger"])["notice"]
    assert "failed" in notice["text"]
    assert notice["kind"] == "error"


async def test_moves_that_were_refused_are_an_error(visitor: Visitor, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest"))).job
    for kind in ("done", "error"):
        moved = await visitor.act(
            "/jobs/bulk", {"move": "cancel", "id": str(job.id)}, headers={"HX-Request": "true"}
        )
        assert json.loads(moved.headers["HX-Trigger"])["notice"]["kind"] == kind


async def test_a_finished_crawl_is_exported_and_its_settings_are_reused(
    visitor: Visitor, queue: Queue
) -> None:
    payload = {"urls": ["https://docs.example.org/"], "max_pages": 7, "exclude": ["/old/*"]}
    job = (await queue.enqueue(NewJob(kind="crawl", source_id="docs", payload=payload))).job
    rows = await visitor.get(f"/jobs/{job.id}/export?format=jsonl")
    assert (rows.status, rows.headers["Content-Type"]) == (200, "application/x-ndjson")
    form = (await visitor.get(f"/new-crawl?job={job.id}")).text
    assert 'value="7"' in form
    assert all(text in form for text in ("https://docs.example.org/</textarea>", "/old/*", "docs"))


async def test_the_pages_of_a_job_are_exported_as_markdown_with_progress(
    visitor: Visitor, crawls: Crawls
) -> None:
    await crawls.crawl({"a": "one", "b/c": "two"})
    [(job_id,)] = await execute(
        crawls.database, "UPDATE crawl_jobs SET kind = 'crawl' RETURNING id"
    )
    async with visitor.session.get(f"/jobs/{job_id}/export?format=markdown") as answer:
        assert answer.content_type == "application/zip"
        file = BytesIO(await answer.read())
    with ZipFile(file) as archive:
        assert sorted(archive.namelist()) == ["a.md", "b/c.md"]
        assert "two" in archive.read("b/c.md").decode()
    assert EXPORTS == []
    EXPORTS.append(RunningExport(job_id, "WARC", 4, 1))
    try:
        page = (await visitor.get(f"/jobs/{job_id}")).text
    finally:
        EXPORTS.clear()
    assert "WARC export: 1 of 4" in page
    assert "25 %" in page
    assert "Markdown</a>" in page


async def test_a_private_address_is_refused_below_the_url_with_the_box_that_allows_it(
    visitor: Visitor,
) -> None:
    fields = {"urls": "http://127.0.0.1:9/"}
    refused = (await visitor.act("/new-crawl", fields)).text
    below = refused.partition('id="e-urls"')[2].partition("<details")[0]
    assert 'name="allow_private"' in below
    assert refused.count('name="allow_private"') == 1
    assert "http://127.0.0.1:9/</textarea>" in refused
    started = await visitor.act(
        "/new-crawl", {**fields, "allow_private": "yes"}, allow_redirects=False
    )
    assert started.status == 303
