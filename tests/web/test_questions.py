"""What cannot be undone is asked for also where no script is there to ask."""

from __future__ import annotations

import re

from built_site import SOURCE, Crawls
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from web.visitor import Visitor

FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


async def test_a_source_is_deleted_only_after_the_answer(visitor: Visitor, crawls: Crawls) -> None:
    await crawls.crawl({"a": "alpha"})
    where = f"/sources/{SOURCE}"
    assert 'name="ask" value="Delete' in (await visitor.get(where)).text
    headers = {"Referer": f"{visitor.address}{where}?x=1"}
    asked = await visitor.act(f"{where}/delete", {"ask": "Delete it?<b>"}, headers=headers)
    assert "Delete it?&lt;b&gt;" in asked.text
    assert f'href="{where}?x=1"' in asked.text
    assert (await visitor.get(where)).status == 200
    fields = dict(FIELD.findall(asked.text.partition('<main id="main"')[2]))
    assert fields["sure"] == "yes"
    assert "ask" not in fields
    await visitor.post(f"{where}/delete", fields)
    assert (await visitor.get(where)).status == 404


async def test_jobs_are_cancelled_only_after_the_answer(visitor: Visitor, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest"))).job
    wanted = {"id": str(job.id), "move": "cancel"}
    asked = await visitor.act("/jobs/bulk?ask=Cancel%20them%3F", wanted)
    assert "Cancel them?" in asked.text
    assert f'value="{job.id}"' in asked.text
    assert (await queue.get(job.id)).status is Status.PENDING
    await visitor.act("/jobs/bulk", {**wanted, "sure": "yes", "ask": "Cancel them?"})
    assert (await queue.get(job.id)).status is Status.CANCELLED


async def test_a_script_has_asked_already(visitor: Visitor, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest"))).job
    fields = {"id": str(job.id), "move": "cancel", "ask": "Cancel them?"}
    await visitor.act("/jobs/bulk", fields, headers={"HX-Request": "true"})
    assert (await queue.get(job.id)).status is Status.CANCELLED


async def test_the_way_back_leads_to_no_other_site(visitor: Visitor) -> None:
    for referer in ("https://evil.example/", f"{visitor.address}//evil.example/", "javascript:x"):
        asked = await visitor.act(
            "/jobs/bulk", {"ask": "Sure?"}, headers={"Referer": referer, "Origin": visitor.address}
        )
        assert "Are you sure?" in asked.text
        assert 'href="//' not in asked.text
        assert "evil.example/" not in asked.text.replace('href="/evil.example/"', "")
        assert "javascript:" not in asked.text
