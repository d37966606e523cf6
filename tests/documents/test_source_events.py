"""Publications, withheld generations and changed pages are events, for webhooks and lists."""

from __future__ import annotations

from typing import Any

import pytest

from built_site import SOURCE, Crawls
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents import change_events
from forager.documents.change_events import ChangeReporter
from forager.documents.publication import roll_back
from forager.errors import InvalidInput
from forager.events.event import EventKind
from forager.events.service import list_events
from forager.jobs.queue import Queue
from forager.secrets import Vault
from forager.settings import Settings
from forager.webhooks.message_text import lines_of, subject_of
from forager.webhooks.service import NewWebhook, Webhooks
from support.sql import execute, fetch_value

MANY = {f"page-{n}": f"text {n}" for n in range(30)}


@pytest.fixture
def crawls(database: Database, queue: Queue, settings: Settings) -> Crawls:
    return Crawls(database, queue, settings)


@pytest.fixture
def webhooks(database: Database, settings: Settings) -> Webhooks:
    return Webhooks(database, Vault(settings))


async def payloads(database: Database, kind: EventKind) -> list[dict[str, Any]]:
    """Payloads of events of a kind, oldest first."""
    return [event.payload for event in (await list_events(database, kind=kind)).items[::-1]]


async def receivers(database: Database, kind: EventKind) -> list[int]:
    """The webhooks that get the events of a kind."""
    rows = await execute(
        database,
        """
        SELECT o.lane FROM outbox o JOIN catalog_events e ON e.id = o.ref_id
         WHERE o.topic = 'webhooks' AND e.kind = %s ORDER BY o.lane
        """,
        kind,
    )
    return [lane for (lane,) in rows]


async def test_a_publication_and_a_roll_back_are_events(database: Database, crawls: Crawls) -> None:
    await crawls.crawl({"a": "one", "b": "two"})
    await crawls.crawl({"a": "one", "b": "new", "c": "three"})
    await roll_back(database, SOURCE)
    first, second, back = await payloads(database, EventKind.SOURCE_PUBLISHED)
    assert (first["generation"], first["pages"], first["difference"]) == (1, 2, None)
    assert (second["added"], second["changed"], second["removed"]) == (1, 1, 0)
    assert second["difference"] == f"/sources/{SOURCE}/diff?old=1&new=2"
    assert (back["generation"], back["previous_generation"], back["rolled_back"]) == (1, 2, True)


async def test_a_withheld_generation_is_an_event_with_the_reason(
    database: Database, crawls: Crawls
) -> None:
    await crawls.crawl(MANY)
    assert await crawls.crawl({"page-1": "all that is left"}) is not None
    [held_back] = await payloads(database, EventKind.SOURCE_HELD_BACK)
    assert (held_back["generation"], held_back["published_generation"]) == (2, 1)
    assert "pages fell from 30 to 1" in held_back["reason"]
    assert len(await payloads(database, EventKind.SOURCE_PUBLISHED)) == 1


async def test_an_event_is_rolled_back_with_its_publication(
    database: Database, crawls: Crawls
) -> None:
    crawl = await crawls.start()

    async def finish_and_fail() -> None:
        async with database.transaction() as connection:
            await crawl.writer.finish(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await finish_and_fail()
    assert (await list_events(database)).items == []


async def test_webhooks_get_the_changes_that_match_their_pattern(
    database: Database, crawls: Crawls, webhooks: Webhooks
) -> None:
    async def add(name: str, **filters: Any) -> int:
        new = NewWebhook(f"https://{name}.example/", kinds=("source.changed",), **filters)
        return (await webhooks.add(new)).webhook.id

    everything = await add("all")
    of_pages = await add("pages", pattern="/b")
    of_headings = await add("headings", pattern="re:^Details")
    await add("none", pattern="/elsewhere/")
    await add("other", source="other.example.org")
    await crawls.crawl({"a": "one", "b": "two", "gone": "three"})
    await crawls.crawl({"a": "changed", "b": "changed too", "new": "four"})
    assert await payloads(database, EventKind.SOURCE_CHANGED) == []
    reporter = ChangeReporter(database)
    assert await reporter.run_once() == 1
    assert await reporter.run_once() == 0
    assert await receivers(database, EventKind.SOURCE_CHANGED) == [
        everything,
        of_pages,
        of_headings,
    ]
    found = {each["pattern"]: each for each in await payloads(database, EventKind.SOURCE_CHANGED)}
    changes = {page["url"].rpartition("/")[2]: page["change"] for page in found[None]["pages"]}
    assert changes == {"a": "changed", "b": "changed", "new": "added", "gone": "removed"}
    [page] = found["/b"]["pages"]
    assert any("-two" in section["diff"] for section in page["sections"])
    headings = {
        section["heading"] for page in found["re:^Details"]["pages"] for section in page["sections"]
    }
    assert headings == {"Details"}


async def test_without_a_subscription_nothing_is_compared(
    database: Database, crawls: Crawls
) -> None:
    await crawls.crawl({"a": "one"})
    await crawls.crawl({"a": "two"})
    assert await fetch_value(database, "SELECT count(*) FROM outbox") == 0


async def test_generations_that_are_gone_are_not_compared(
    database: Database, crawls: Crawls, webhooks: Webhooks
) -> None:
    await webhooks.add(NewWebhook("https://all.example/", kinds=("source.changed",)))
    await crawls.crawl({"a": "one"})
    await crawls.crawl({"a": "two"})
    await execute(database, "UPDATE generations SET state = 'abandoned' WHERE number = 1")
    assert await ChangeReporter(database).run_once() == 1
    assert await payloads(database, EventKind.SOURCE_CHANGED) == []
    assert await fetch_value(database, "SELECT count(*) FROM outbox") == 0


async def test_a_filter_by_source_includes_its_versions(
    database: Database, queue: Queue, settings: Settings, webhooks: Webhooks
) -> None:
    new = NewWebhook("https://a.example/", kinds=("source.published",), source="flask")
    webhook = (await webhooks.add(new)).webhook
    for source in ("flask@2.2", "flask", "flask-login"):
        await Crawls(database, queue, settings, source=source).crawl({"a": "one"})
    assert await receivers(database, EventKind.SOURCE_PUBLISHED) == [webhook.id] * 2
    assert len((await list_events(database, source_id="flask@2.2")).items) == 1


async def test_only_the_owner_sees_events_of_a_source(database: Database, crawls: Crawls) -> None:
    owner = new_id()
    await crawls.crawl({"a": "one"})
    await execute(database, "UPDATE sources SET user_id = %s", owner)
    await crawls.crawl({"a": "two"})
    assert len((await list_events(database)).items) == 2
    assert len((await list_events(database, user_id=owner)).items) == 1
    assert (await list_events(database, user_id=new_id())).items == []


async def test_a_pattern_that_cannot_match_is_refused(webhooks: Webhooks) -> None:
    with pytest.raises(InvalidInput, match="can match no URL"):
        await webhooks.add(NewWebhook("https://a.example/", pattern="api"))


async def test_messages_for_people_list_the_pages(
    database: Database, crawls: Crawls, webhooks: Webhooks
) -> None:
    await webhooks.add(NewWebhook("https://all.example/"))
    await crawls.crawl({"a": "one"})
    await crawls.crawl({"a": "two"})
    await ChangeReporter(database).run_once()
    [event] = (await list_events(database, kind=EventKind.SOURCE_CHANGED)).items
    content = {
        "kind": event.kind,
        "source": event.source_id,
        "domain": None,
        "product": None,
        "occurred_at": "2026-03-01T12:00:00Z",
        "data": event.payload,
    }
    assert subject_of(content) == f"{SOURCE}: 1 page changed in generation 2"
    assert f"changed: https://{SOURCE}/a" in list(lines_of(content))


async def test_others_do_not_see_the_content_of_a_message(
    database: Database, crawls: Crawls, webhooks: Webhooks
) -> None:
    webhook = (await webhooks.add(NewWebhook("https://all.example/"))).webhook
    owner = new_id()
    await crawls.crawl({"a": "one"})
    await execute(database, "UPDATE catalog_events SET user_id = %s", owner)
    [message] = (await webhooks.deliveries(webhook.id)).items
    for user_id, is_seen in ((None, True), (owner, True), (new_id(), False)):
        _, event = await webhooks.delivery(webhook.id, message.id, user_id=user_id)
        assert (event is not None) is is_seen


async def test_changes_of_a_deleted_source_are_not_reported(
    database: Database, crawls: Crawls, webhooks: Webhooks
) -> None:
    await webhooks.add(NewWebhook("https://all.example/", kinds=("source.changed",)))
    await crawls.crawl({"a": "one"})
    await crawls.crawl({"a": "two"})
    await execute(database, "UPDATE sources SET deleted_at = now()")
    assert await ChangeReporter(database).run_once() == 1
    assert await fetch_value(database, "SELECT count(*) FROM outbox") == 0


async def test_an_event_says_that_not_all_changes_were_compared(
    database: Database, crawls: Crawls, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_events, "MAX_COMPARED", 1)
    new = NewWebhook("https://all.example/", kinds=("source.changed",), pattern="/elsewhere/")
    await webhooks.add(new)
    await crawls.crawl({"a": "one", "b": "two"})
    await crawls.crawl({"a": "other", "b": "others"})
    await ChangeReporter(database).run_once()
    [found] = await payloads(database, EventKind.SOURCE_CHANGED)
    assert (found["pages"], found["truncated"]) == ([], True)
