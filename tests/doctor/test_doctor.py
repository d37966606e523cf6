"""What the doctor finds of work and products, and what it advises."""

from __future__ import annotations

from pathlib import Path

import pytest

from forager.checks import Finding, Level
from forager.db.database import Database
from forager.db.ids import new_id
from forager.doctor.machine import check_storage
from forager.fetch.checks import check_proxies
from forager.fetch.proxies.service import Proxies, parse_address
from forager.jobs.checks import check_workers
from forager.jobs.workers import Registration, list_workers
from forager.parsers.checks import check_parsers
from forager.secrets import Vault
from forager.settings import Settings
from forager.tasks.checks import check_dead_letters, check_regions, check_tasks
from forager.tasks.scheduler import Scheduler
from forager.webhooks.checks import check_webhooks
from forager.webhooks.service import NewWebhook, Webhooks
from tasks.working import Tasks

LATE = "UPDATE crawl_tasks SET scheduled_at = now() - interval '1 hour'"


@pytest.fixture
def tasks(database: Database, settings: Settings) -> Tasks:
    return Tasks(database, settings)


async def enter(database: Database, role: str) -> None:
    await Registration(database, new_id(), capacity=1, role=role).renew()


def assert_warns(check: Finding, *words: str) -> None:
    assert check.level is Level.WARN, check
    for word in words:
        assert word in f"{check.message} {check.next_step} {check.examples}"


async def test_workers_are_counted_by_what_they_do(tasks: Tasks) -> None:
    database, settings = tasks.database, tasks.settings
    await enter(database, "tasks")
    check = await check_workers(database, settings)
    assert (check.level, check.message) == (Level.OK, "0 for jobs, 1 for tasks; 0 jobs waiting")
    await tasks.sql(
        "INSERT INTO crawl_jobs (id, kind, payload) VALUES (%s, 'selftest', '{}')", new_id()
    )
    assert_warns(await check_workers(database, settings), "1 job waiting", "forager worker")
    await enter(database, "jobs")
    assert (await check_workers(database, settings)).level is Level.OK
    await tasks.silence()
    assert_warns(await check_workers(database, settings), "0 for jobs", "unreachable")
    assert [each.state for each in await list_workers(database, settings)] == ["unreachable"] * 2


async def test_a_killed_worker_of_this_machine_is_unreachable_at_once(tasks: Tasks) -> None:
    await enter(tasks.database, "jobs")
    await enter(tasks.database, "tasks")
    await tasks.sql("UPDATE workers SET process = process || '0' WHERE role = 'jobs'")
    found = await list_workers(tasks.database, tasks.settings)
    assert [each.state for each in found] == ["unreachable", "running"]
    assert_warns(await check_workers(tasks.database, tasks.settings), "0 for jobs, 1 for")


async def test_tasks_that_are_late_want_a_scheduler_and_a_worker(tasks: Tasks) -> None:
    database, settings = tasks.database, tasks.settings
    await tasks.add("http://shop.example/1", status="pending")
    assert (await check_tasks(database, settings)).message == "none is late"
    await tasks.sql(LATE)
    assert_warns(await check_tasks(database, settings), "1 have been due", "forager scheduler")
    await Scheduler(database, settings).run_once()
    assert_warns(await check_tasks(database, settings), "no worker for tasks", "forager worker")
    await enter(database, "tasks")
    assert (await check_tasks(database, settings)).level is Level.OK
    await tasks.sql("UPDATE task_control SET ticked_at = now() - interval '1 hour'")
    assert_warns(await check_tasks(database, settings), "no scheduler has looked since")
    await tasks.sql("UPDATE task_control SET hold = 'paused'")
    assert (await check_tasks(database, settings)).level is Level.OK


async def test_domains_that_wait_for_their_region_are_counted(tasks: Tasks) -> None:
    database, settings = tasks.database, tasks.settings
    await tasks.add("http://shop.example/1", "http://other.example/1", "http://free.example/1")
    await enter(database, "tasks")
    assert (await check_regions(database, settings)).level is Level.OK
    await tasks.sql("UPDATE domains SET region = 'eu' WHERE domain_name <> 'free.example'")
    check = await check_regions(database, settings)
    assert_warns(check, "2 domains wait for a worker of region eu", "forager worker --region eu")
    # held tasks and disabled domains are not late
    for held, free in (
        ("domains SET is_active = false", "domains SET is_active = true"),
        ("domains SET task_hold = 'paused'", "domains SET task_hold = NULL"),
        ("crawl_tasks SET hold = 'paused'", "crawl_tasks SET hold = NULL"),
    ):
        for status in ("queued", "pending"):
            await tasks.sql("UPDATE crawl_tasks SET status = %s", status)
            await tasks.sql(f"UPDATE {held}")
            assert (await check_regions(database, settings)).level is Level.OK
            await tasks.sql(f"UPDATE {free}")
            assert_warns(await check_regions(database, settings), "2 domains wait")
    await tasks.sql("UPDATE crawl_tasks SET status = 'downloaded'")
    await tasks.sql("UPDATE domains SET is_active = false")
    assert_warns(await check_regions(database, settings), "2 domains wait")
    await tasks.sql("UPDATE domains SET is_active = true")
    await Registration(database, new_id(), capacity=1, role="tasks", region="eu").renew()
    assert (await check_regions(database, settings)).level is Level.OK
    # a crawl waits for a worker of another role
    await tasks.sql(
        """
        INSERT INTO crawl_jobs (id, kind, payload, host, region)
        VALUES (%s, 'crawl', '{}', 'shop.example', 'eu')
        """,
        new_id(),
    )
    assert_warns(await check_regions(database, settings), "1 domain waits")
    await tasks.silence()
    assert_warns(await check_regions(database, settings), "2 domains wait")


async def test_domains_that_wait_for_a_worker_with_a_proxy_are_counted(tasks: Tasks) -> None:
    database, settings = tasks.database, tasks.settings
    await tasks.add("http://pooled.example/1", "http://direct.example/1")
    await tasks.sql("UPDATE domains SET use_proxies = domain_name = 'pooled.example'")
    await enter(database, "tasks")
    assert (await check_regions(database, settings)).level is Level.OK
    await Proxies(database, Vault(settings)).add(parse_address("http://proxy.example:8080"))
    assert (await check_regions(database, settings)).level is Level.OK
    await tasks.sql("UPDATE proxies SET region = 'eu'")
    check = await check_regions(database, settings)
    assert_warns(check, "1 domain waits for a worker of region eu", "forager worker --region eu")
    await Registration(database, new_id(), capacity=1, role="tasks", region="eu").renew()
    assert (await check_regions(database, settings)).level is Level.OK


async def test_dead_letters_wait_for_a_person(settings: Settings, tasks: Tasks) -> None:
    assert (await check_dead_letters(tasks.database, settings)).message == "none"
    (task_id,) = await tasks.add("http://shop.example/1", status="failed")
    await tasks.sql(
        """
        INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                  message_key, error_message, attempts)
        SELECT id, domain_id, url, 'download', 'http', 'http_client', 'gone', 'HTTP 404 Gone', 1
          FROM crawl_tasks WHERE id = %s
        """,
        task_id,
    )
    check = await check_dead_letters(tasks.database, settings)
    assert_warns(check, "permanently failed tasks", "shop.example", "forager dead-letters")


async def test_proxies_and_webhooks_that_fail_are_named(tasks: Tasks) -> None:
    database, settings = tasks.database, tasks.settings
    assert (await check_proxies(database, settings)).message == "none"
    assert (await check_webhooks(database, settings)).message == "none"
    vault = Vault(settings)
    for port in (8001, 8002):
        spec = parse_address(f"http://127.0.0.1:{port}")
        await Proxies(database, vault).add(spec, allow_private=True)
    await Webhooks(database, vault).add(NewWebhook("http://127.0.0.1:9/hook", allow_private=True))
    assert (await check_proxies(database, settings)).message == "2 of 2 in use"
    assert (await check_webhooks(database, settings)).level is Level.OK
    await tasks.sql(
        """
        UPDATE proxies SET is_active = false, next_probe_at = now(), last_failure_reason = 'deaf'
         WHERE proxy_port = 8001
        """
    )
    await tasks.sql("UPDATE webhooks SET failures = 3, rests_until = now() + interval '1 hour'")
    assert_warns(await check_proxies(database, settings), "1 of 2 in use", "127.0.0.1:8001 (deaf)")
    assert_warns(await check_webhooks(database, settings), "/hook (3 failures)")


async def test_parsers_that_cannot_be_used_are_named(tasks: Tasks, tmp_path: Path) -> None:
    assert (await check_parsers(tasks.database, tasks.settings)).level is Level.OK
    await tasks.sql("INSERT INTO parser_rollouts (parser, active_version) VALUES ('lost', '4')")
    assert_warns(await check_parsers(tasks.database, tasks.settings), "lost 4")
    module = tmp_path / "broken.py"
    module.write_text("import nothing_like_it", encoding="utf-8")
    broken = tasks.settings.model_copy(update={"parser_modules": (str(module),)})
    assert_warns(await check_parsers(tasks.database, broken), "nothing_like_it")


async def test_a_place_that_cannot_be_written_is_a_failure(
    settings: Settings, tmp_path: Path
) -> None:
    assert (await check_storage(settings)).level is Level.OK
    assert not (settings.home / "archive").exists()
    for place in ("/proc/archive", "file:///proc/archive"):
        check = await check_storage(settings.model_copy(update={"archive_url": place}))
        assert check.level is Level.FAIL
        assert "cannot be written" in check.message
    odd = await check_storage(settings.model_copy(update={"archive_url": "gopher://there"}))
    assert odd.level is Level.FAIL
    images = tmp_path / "archive" / "images"
    images.parent.mkdir()
    images.symlink_to("/proc")
    beside = settings.model_copy(update={"archive_url": str(images.parent)})
    assert "images cannot be written" in (await check_storage(beside)).message
