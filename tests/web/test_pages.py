"""What pages show: through HTTP, without a browser."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from archived_job import Settled, html, start_job
from built_site import SOURCE, Crawls
from forager.archive.options import archive_options
from forager.archive.warc_record import ResponseRecord, pack
from forager.archive.writer import ArchiveWriter
from forager.db.database import Database
from forager.documents import publication
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.render.archive_records import pack_page
from forager.render.renderer import RenderedPage
from forager.settings import Settings
from forager.tasks.service import Tasks
from support.sql import execute
from web.catalog_rows import HOSTILE
from web.visitor import Visitor

ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


async def test_what_was_crawled_is_shown_as_text(visitor: Visitor, crawls: Crawls) -> None:
    await crawls.crawl({"a": HOSTILE, "b": "plain"})
    for path in (
        f"/sources/{SOURCE}/pages",
        "/search?q=alert",
        f"/read?url=https://{SOURCE}/a&source={SOURCE}",
    ):
        page = await visitor.get(path)
        assert page.status == 200
        assert "<script>alert" not in page.text
        assert ESCAPED in page.text or "&lt;" in page.text


async def test_what_is_held_back_is_neither_green_nor_retired(
    visitor: Visitor, crawls: Crawls, queue: Queue
) -> None:
    await crawls.crawl({"a": "one", "b": "two"})
    await crawls.crawl({"c": "three"})
    newest = (await queue.list_jobs()).items[0]
    source = f"/sources/{SOURCE}"
    for path in ("/jobs", f"/jobs/{newest.id}", "/sources", source):
        text = (await visitor.get(path)).text
        assert "s-held_back" in text
        assert "pages fell from 2 to 1" in text
        assert "retired" not in text
    assert "s-completed" not in (await visitor.get(f"/jobs/{newest.id}")).text.split("<table")[0]
    assert ">Roll back<" not in (await visitor.get(source)).text
    page = {"url": f"https://{SOURCE}/c"}
    explained = (await visitor.get("/explain", params=page)).text
    assert "Generation 2 is held back: pages fell" in explained or "held back: pages" in explained
    assert "Publish anyway" in explained
    assert f"/read?url=https%3A//{SOURCE}/c&amp;source={SOURCE}&amp;generation=2" in explained
    read = await visitor.get("/read", params={**page, "source": SOURCE, "generation": "2"})
    assert "Generation 2 is held back: pages fell from 2 to 1." in read.text
    assert "The page is not published." in read.text
    shown = await visitor.get("/read", params={"url": f"https://{SOURCE}/a", "source": SOURCE})
    assert "earlier version" not in shown.text
    await publication.publish(crawls.database, SOURCE, force=True)
    published = (await visitor.get(source)).text
    assert ">Roll back<" in published
    assert "Readers will see generation 1 of " in published


async def test_the_throughput_of_a_paused_job_ends_with_its_work(
    visitor: Visitor, queue: Queue, database: Database
) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="one"))).job
    await execute(
        database,
        """
        UPDATE crawl_jobs SET status = 'paused', started_at = now() - interval '10 hours'
         WHERE id = %s
        """,
        job.id,
    )
    await execute(
        database,
        """
        INSERT INTO crawl_states (job_id, discovered, updated_at)
        VALUES (%s, 0, now() - interval '10 hours' + interval '23 seconds')
        """,
        job.id,
    )
    text = (await visitor.get(f"/jobs/{job.id}")).text
    [axis] = re.findall(r'<div class="chart-x" aria-hidden="true">(.*?)</div>', text)
    assert axis.endswith("<span>24 s</span>")


def tab_counts(text: str) -> dict[str, str]:
    """The names of the tabs and the counts beside them."""
    [tabs] = re.findall(r'<ul class="tabs"[^>]*>(.*?)</ul>', text, re.S)
    return dict(re.findall(r'>(\w+) <span class="muted">([\d,]+)</span>', tabs))


async def test_failing_tasks_are_a_filter_of_the_task_list(
    visitor: Visitor, database: Database, settings: Settings
) -> None:
    await Tasks(database, settings).track([f"https://a.example/{n}" for n in range(3)])
    await execute(database, "UPDATE crawl_tasks SET status = 'failed' WHERE url LIKE '%/0'")
    await execute(database, "UPDATE crawl_tasks SET failing_since = now() WHERE url LIKE '%/1'")
    page = (await visitor.get("/tasks?failing=yes")).text
    shown = [n for n in range(3) if f"a.example/{n}" in page]
    assert shown == [0, 1]
    assert re.search(r'name="failing"[^>]*checked', page)


async def test_counts_beside_filters_follow_the_filters(
    visitor: Visitor, queue: Queue, database: Database, settings: Settings
) -> None:
    for name in ("one", "two", "three"):
        await queue.enqueue(NewJob(kind="selftest", source_id=name))
    assert tab_counts((await visitor.get("/jobs")).text)["pending"] == "3"
    assert tab_counts((await visitor.get("/jobs?q=one")).text)["pending"] == "1"

    for url in ("https://a.example/1", "https://a.example/2", "https://b.example/1"):
        await Tasks(database, settings).track([url])
    assert tab_counts((await visitor.get("/tasks")).text)["pending"] == "3"
    assert tab_counts((await visitor.get("/tasks?domain=a.example")).text)["pending"] == "2"
    failed = (await visitor.get("/tasks?domain=a.example&status=failed")).text
    assert tab_counts(failed)["pending"] == "2"
    assert 'href="/tasks?domain=a.example&amp;status=pending"' in failed

    job = (await queue.list_jobs()).items[0]
    await execute(
        database,
        """
        INSERT INTO crawl_visited (job_id, url_hash, url, outcome, reason, depth, via)
        SELECT %s, decode(md5(n::text), 'hex'), 'https://a.example/' || n,
               CASE WHEN n %% 2 = 0 THEN 'failed' ELSE 'fetched' END, NULL, 1, 'link'
          FROM generate_series(1, 12) AS n
        """,
        job.id,
    )
    shown = tab_counts((await visitor.get(f"/jobs/{job.id}/pages?path=/1")).text)
    assert (shown["fetched"], shown["failed"]) == ("2", "2")
    assert "pending" not in shown


@pytest.mark.parametrize("text", [HOSTILE, "' OR 1=1 --", "%00", "\N{REPLACEMENT CHARACTER}" * 400])
async def test_what_is_typed_is_shown_as_text(visitor: Visitor, queue: Queue, text: str) -> None:
    await queue.enqueue(NewJob(kind="selftest", source_id="one"))
    for path in ("/jobs", "/search"):
        page = await visitor.get(path, params={"q": text, "status": text, "source": text})
        assert page.status in (200, 404)
        assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/nonsense",
        "/jobs/00000000-0000-0000-0000-000000000000",
        "/jobs?cursor=nonsense",
        "/sources/none",
        "/sources/none/diff?old=x",
        "/read?url=nonsense",
        "/read?url=https://nowhere.example/",
        "/keys?cursor=%00",
    ],
)
async def test_what_is_not_there_has_a_page_that_says_so(visitor: Visitor, path: str) -> None:
    page = await visitor.get(path)
    assert page.status in (404, 422)
    assert "<h1>" in page.text
    assert "Go to overview" in page.text


async def test_jobs_are_found_by_source_and_state(visitor: Visitor, queue: Queue) -> None:
    for name in ("alpha.example", "beta.example"):
        await queue.enqueue(NewJob(kind="selftest", source_id=name))
    found = (await visitor.get("/jobs?q=ALPHA")).text
    assert "alpha.example" in found
    assert "beta.example" not in found
    assert "No matching jobs" in (await visitor.get("/jobs?status=failed")).text


async def test_a_long_list_says_that_it_is_cut_and_continues(
    visitor: Visitor, queue: Queue
) -> None:
    await queue.enqueue_many([NewJob(kind="selftest") for _ in range(120)])
    first = (await visitor.get("/jobs")).text
    assert "Showing 50 of 120 jobs" in first
    on = first.split("Showing")[1].split('href="')[1].split('"')[0].replace("&amp;", "&")
    assert "Showing 50" in (await visitor.get(on)).text


async def test_a_fleet_is_summarized_and_filtered(visitor: Visitor, queue: Queue) -> None:
    urls = [f"https://{name}.example/" for name in ("a", "b", "c")]
    await queue.enqueue_many([NewJob(kind="crawl", payload={"urls": [url]}) for url in urls])
    page = (await visitor.get("/jobs?host=B.example&activity=waiting-for-worker")).text
    link = (
        '<a href="/jobs?activity=waiting-for-worker" aria-current="true">3 waiting for a worker</a>'
    )
    assert link in page
    assert page.count('<tr id="j-') == 1
    assert 'href="/jobs?host=B.example&amp;activity=waiting-for-worker&amp;status=failed"' in page
    assert "No matching jobs" in (await visitor.get("/jobs?activity=stalled")).text


async def test_the_bar_of_a_failed_job_is_not_green(visitor: Visitor, database: Database) -> None:
    [(job_id,)] = await execute(
        database,
        "INSERT INTO crawl_jobs (id, kind, payload, status, progress_percentage, completed_at)"
        " VALUES (gen_random_uuid(), 'selftest', '{}', 'failed', 99, now()) RETURNING id",
    )
    for path in ("/jobs", f"/jobs/{job_id}"):
        page = (await visitor.get(path)).text
        assert '<rect class="fill-d" width="99"' in page
        assert '<rect class="fill-a" width="99"' not in page


async def test_a_paused_crawl_is_called_paused(
    visitor: Visitor, crawls: Crawls, queue: Queue
) -> None:
    await crawls.crawl({"a": "alpha"})
    await visitor.act(f"/sources/{SOURCE}/refresh")
    assert "queued" in (await visitor.get("/sources")).text
    [job] = (await queue.list_jobs(statuses=[Status.PENDING])).items
    await visitor.act(f"/jobs/{job.id}/move", {"move": "pause"})
    for path, words in (("/sources", "crawl paused"), (f"/sources/{SOURCE}", "Crawl paused")):
        page = (await visitor.get(path)).text
        assert words in page
        assert "eing crawled" not in page


async def test_after_the_first_key_the_sidebar_says_that_one_exists(visitor: Visitor) -> None:
    assert "No API key exists" in (await visitor.get("/keys")).text
    made = (await visitor.act("/keys", {"name": "first", "scope": "admin"})).text
    assert "No API key exists" not in made
    assert "API keys are now required" in made


async def test_the_colours_are_remembered(visitor: Visitor) -> None:
    assert 'data-theme="auto"' in (await visitor.get("/")).text
    await visitor.act("/theme", {"theme": "dark", "to": "/jobs"})
    assert 'data-theme="dark"' in (await visitor.get("/")).text
    await visitor.act("/theme", {"theme": HOSTILE})
    assert 'data-theme="dark"' in (await visitor.get("/")).text


async def test_a_page_is_rendered_with_its_code_and_without_its_images(
    visitor: Visitor, crawls: Crawls
) -> None:
    await crawls.crawl(
        {"a": "![x](https://cdn.example/x.png) <b>bold</b>\n\n```python\ndef f(): ...\n```"}
    )
    read = "/read?url=https://docs.example.org/a"
    page = (await visitor.get(read)).text
    assert '<span class="k">def</span>' in page
    assert "<img" not in page
    assert "&lt;b&gt;bold" in page
    assert "```python" in (await visitor.get(f"{read}&tab=markdown")).text


async def test_the_stored_picture_of_a_rendered_page_is_shown(
    visitor: Visitor, crawls: Crawls, database: Database, settings: Settings
) -> None:
    await crawls.crawl({"a": "words"})
    url = f"https://{SOURCE}/a"
    place = f"url={url}&source={SOURCE}"
    assert (await visitor.get(f"/read/picture?{place}")).status == 404

    async def register(_: str) -> None: ...

    static = pack(ResponseRecord(url, datetime.now(UTC), 200, [], b"shell"))
    rendered = RenderedPage(b"<p>words</p>", url, (), False, None, b"picture", 0.1, ())
    writer = ArchiveWriter(archive_options(settings).open(), "job", 1, register)
    [ref] = await writer.write([pack_page(url, rendered, static)])
    await writer.close()
    await execute(
        database,
        """
            UPDATE generation_documents
               SET segment = %s, segment_offset = %s, segment_length = %s
            """,
        ref.segment,
        ref.offset,
        ref.length,
    )
    assert "/read/picture?" in (await visitor.get(f"/read?{place}&tab=original")).text
    picture = await visitor.get(f"/read/picture?{place}")
    assert (picture.status, picture.headers["Content-Type"]) == (200, "image/png")


async def test_versions_of_a_page_are_read_and_compared(visitor: Visitor, crawls: Crawls) -> None:
    for text in ("old words", "old words", "new words"):
        await crawls.crawl({"a": text, "b": "same"})
    read = f"/read?url=https://{SOURCE}/a&source={SOURCE}"
    assert "Generation 1\N{EN DASH}2" in (await visitor.get(read)).text
    earlier = (await visitor.get(f"{read}&generation=1")).text
    assert "This is an earlier version" in earlier
    assert "About old words." in earlier
    changes = (await visitor.get(f"{read}&tab=changes&view=side")).text
    assert "<del>old</del>" in changes
    assert "<ins>new</ins>" in changes
    unchanged = f"/read?url=https://{SOURCE}/b&source={SOURCE}&tab=changes"
    assert "No earlier version" in (await visitor.get(unchanged)).text
    assert "not in the archive" in (await visitor.get(f"{read}&tab=original")).text
    assert (await visitor.get(f"{read}&generation=9")).status == 404


async def test_urls_of_a_job_are_filtered_sorted_and_read(
    visitor: Visitor, database: Database, queue: Queue, web_settings: Settings
) -> None:
    job = await start_job(database, archive_options(web_settings).open(), queue)
    await job.settle([html(1), Settled("https://docs.example.org/2", outcome="failed")])
    await job.writer.close()
    base = f"/jobs/{job.id}/pages"
    listed = (await visitor.get(f"{base}?sort=-size&minutes=1440")).text
    assert 'aria-sort="descending"' in listed
    assert "sort=url" in listed
    for query, words in (
        ("path=nowhere", "No matching URLs"),
        ("status=many", "must be a whole number"),
        ("outcome=pending", "No pending URLs"),
    ):
        assert words in (await visitor.get(f"{base}?{query}")).text
    response = f"/jobs/{job.id}/response"
    stored = (await visitor.get(f"{response}?url={html(1).url}")).text
    assert all(text in stored for text in ("200 OK", "&lt;title&gt;Page 1", "ä ö ü"))
    body = await visitor.get(f"{response}/file?url={html(1).url}")
    assert body.headers["Content-Disposition"].startswith("attachment")
    assert (await visitor.get(f"{response}?url=https://x.example/")).status == 404


async def test_failed_urls_are_retried_by_reason_and_paths_are_browsed(
    visitor: Visitor, database: Database, crawls: Crawls
) -> None:
    await crawls.crawl({"a": "alpha", "guide/b": "beta"})
    [[job_id]] = await execute(database, "SELECT id FROM crawl_jobs")
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, reason, depth, via)
            SELECT %s, sha256(url::bytea), 'https://docs.example.org/' || url, outcome, reason, 1,
                   'link'
              FROM (VALUES ('a', 'fetched', NULL), ('guide/b', 'fetched', NULL),
                           ('guide/c', 'failed', 'http_500'), ('guide/d', 'failed', 'http_404'))
                   AS v (url, outcome, reason)
            """,
            (job_id,),
        )
        await connection.execute(
            "INSERT INTO crawl_states (job_id, discovered, fetched, failed, reasons) VALUES"
            ' (%s, 4, 2, 2, \'{"failed": {"http_500": 1, "http_404": 1}}\')',
            (job_id,),
        )
    tree = (await visitor.get(f"/sources/{SOURCE}/tree")).text
    assert ">guide/</a>" in tree
    below = (await visitor.get(f"/sources/{SOURCE}/tree?prefix=https://{SOURCE}/guide/")).text
    assert "outcome=failed&amp;path=https%3A//docs.example.org/guide/c" in below
    assert "Retry these" in (await visitor.get(f"/jobs/{job_id}")).text
    done = await visitor.act(f"/jobs/{job_id}/retry-failed", {"reason": "http_500"})
    assert "1 URL will be fetched again" in done.text
    pending = await execute(database, "SELECT url FROM crawl_frontier")
    assert pending == [("https://docs.example.org/guide/c",)]
