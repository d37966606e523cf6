"""The audit finds what contradicts itself and what grows old, and nothing else."""

from __future__ import annotations

from typing import LiteralString

import pytest
import typer
from typer.testing import CliRunner

from forager.checks import Level, Report
from forager.cli.options import Flags
from forager.cli.products.products import audit as audit_command
from forager.db.database import Database
from forager.events.event import EventKind, NewEvent
from forager.events.service import list_events, record_events
from forager.images.files import image_path, open_image_files
from forager.products import checks
from forager.products.audit import audit_catalog, audit_if_due, last_audit
from forager.settings import Settings
from forager.webhooks.service import clean_up_webhooks
from products.rows import add_product, insert_domain


@pytest.fixture
async def sound(database: Database) -> Database:
    """A small catalog that is as it should be."""
    for number in range(3):
        await add_product(database, number)
    async with database.connection() as connection:
        # a domain without tasks
        await insert_domain(connection, "empty.example")
    return database


async def spoil(database: Database, *statements: LiteralString) -> None:
    async with database.connection() as connection:
        for statement in statements:
            await connection.execute(statement)


def names(audit: Report) -> dict[str, int]:
    return {finding.check: finding.count for finding in audit.findings}


async def test_a_sound_catalog_has_no_findings(sound: Database, settings: Settings) -> None:
    audit = await audit_catalog(sound, settings)

    assert audit.ok
    assert audit.findings == []
    (event,) = (await list_events(sound, kind="catalog.audit")).items
    assert event.payload["findings"] == []
    assert event.payload["checks"] == audit.checks == 12


async def test_no_longer_tracking_a_product_is_no_contradiction(
    sound: Database, settings: Settings
) -> None:
    async with sound.connection() as connection:
        await connection.execute("DELETE FROM crawl_tasks")
    audit = await audit_catalog(sound, settings)
    assert {finding.level for finding in audit.findings} == {Level.WARN}


FIRST_TASK: LiteralString = "(SELECT min(id) FROM crawl_tasks)"


@pytest.mark.parametrize(
    ("check", "statement"),
    [
        ("products_without_task", "DELETE FROM crawl_tasks WHERE id = {task}"),
        (
            "tasks_without_domain",
            """
            ALTER TABLE crawl_tasks DROP CONSTRAINT crawl_tasks_domain_id_fkey;
            UPDATE crawl_tasks SET domain_id = 9999 WHERE id = {task}
            """,
        ),
        (
            "completed_without_next_crawl",
            "UPDATE crawl_tasks SET next_crawl_at = NULL WHERE id = {task}",
        ),
        (
            "dead_letters_of_living_tasks",
            """
            INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                      error_message, message_key, attempts)
            VALUES ({task}, 1, 'u', 'parse', 'parse', 'parse', 'm', 'm', 4)
            """,
        ),
        (
            "failed_without_dead_letter",
            "UPDATE crawl_tasks SET status = 'failed' WHERE id = {task}",
        ),
        ("archive_segments_gone", "UPDATE crawl_tasks SET segment = 'gone' WHERE id = {task}"),
        (
            "products_not_seen",
            "UPDATE products SET last_seen_at = now() - interval '73 h' WHERE id = 1",
        ),
        (
            "tasks_overdue",
            "UPDATE crawl_tasks SET next_crawl_at = now() - interval '2 h' WHERE id = {task}",
        ),
        (
            "tasks_overdue",
            """
            UPDATE crawl_tasks SET status = 'pending', scheduled_at = now() - interval '2 h'
             WHERE id = {task}
            """,
        ),
        ("prices_differ", "UPDATE products SET price = 11 WHERE id = 1"),
        ("prices_differ", "UPDATE products SET currency = 'USD' WHERE id = 1"),
        ("prices_differ", "DELETE FROM price_history WHERE product_id = 1"),
        (
            "images_without_file",
            """
            INSERT INTO images (product_id, image_url, url_hash, status, image_path, content_hash)
            VALUES (1, 'u', 'u', 'stored', 'images/no', 'c')
            """,
        ),
    ],
)
async def test_each_fault_is_found_alone(
    sound: Database, settings: Settings, check: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the path of that image is no path at all, and is not looked for
    monkeypatch.setattr(checks, "IMAGE_SAMPLE", 0)
    filled = statement.replace("{task}", FIRST_TASK)
    await spoil(sound, *filled.split(";"))

    audit = await audit_catalog(sound, settings)

    assert names(audit) == {check: 1}
    assert len(audit.findings[0].examples) == 1
    assert await last_audit(sound) == audit


async def test_domains_all_of_whose_tasks_fail_are_named(
    sound: Database, settings: Settings
) -> None:
    await spoil(sound, "UPDATE crawl_tasks SET status = 'failed'")
    found = {each.check: each for each in (await audit_catalog(sound, settings)).findings}
    assert found["domains_that_fail"].examples == ["shop.example"]
    assert found["domains_that_fail"].level is Level.WARN


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE task_control SET hold = 'paused'",
        "UPDATE domains SET task_hold = 'stopped'",
        "UPDATE domains SET is_active = false",
        "UPDATE crawl_tasks SET hold = 'paused'",
    ],
)
async def test_what_is_held_back_may_be_old(
    sound: Database, settings: Settings, statement: LiteralString
) -> None:
    await spoil(
        sound,
        "UPDATE crawl_tasks SET next_crawl_at = now() - interval '9 d'",
        "UPDATE products SET last_seen_at = now() - interval '99 d'",
    )
    assert names(await audit_catalog(sound, settings)) == {
        "products_not_seen": 3,
        "tasks_overdue": 3,
    }
    await spoil(sound, "INSERT INTO task_control DEFAULT VALUES ON CONFLICT DO NOTHING", statement)
    assert names(await audit_catalog(sound, settings)) == {}


async def test_a_slow_interval_is_no_staleness(sound: Database, settings: Settings) -> None:
    await spoil(
        sound,
        "UPDATE products SET last_seen_at = now() - interval '20 d'",
        "UPDATE domains SET crawl_frequency = interval '7 d'",
    )
    assert names(await audit_catalog(sound, settings)) == {}


async def test_files_of_images_are_looked_for(sound: Database, settings: Settings) -> None:
    path = image_path(b"1" * 32, "png")
    async with sound.connection() as connection:
        await connection.execute(
            """
            INSERT INTO image_files (content_hash, path, media_type, width, height, file_size)
            VALUES (%s, %s, 'image/png', 1, 1, 3)
            """,
            (b"1" * 32, path),
        )
        await connection.execute(
            """
            INSERT INTO images (product_id, image_url, url_hash, status, image_path, content_hash,
                                file_size)
            VALUES (1, 'u', 'u', 'stored', %s, %s, 3)
            """,
            (path, b"1" * 32),
        )
    files = open_image_files(settings)

    assert names(await audit_catalog(sound, settings)) == {"image_files_missing": 1}
    await files.put_all(path, b"12")
    assert names(await audit_catalog(sound, settings)) == {"image_files_missing": 1}
    await files.put_all(path, b"123")
    assert names(await audit_catalog(sound, settings)) == {}


async def test_many_products_are_looked_at_in_pieces(
    sound: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "CHUNK", 1)
    monkeypatch.setattr(checks, "EXAMPLES", 2)
    await spoil(sound, "UPDATE products SET price = 7")
    (finding,) = (await audit_catalog(sound, settings)).findings
    assert (finding.count, finding.examples) == (3, [1, 2])


async def test_one_audit_a_day_however_many_ask(sound: Database, settings: Settings) -> None:
    assert await audit_if_due(sound, settings) is not None
    assert await audit_if_due(sound, settings) is None
    await spoil(sound, "UPDATE catalog_events SET occurred_at = now() - interval '25 h'")
    assert await audit_if_due(sound, settings) is not None


async def test_an_audit_of_an_earlier_version_is_still_shown(database: Database) -> None:
    finding = {"check": "c", "concern": "integrity", "meaning": "rows", "count": 2, "examples": [1]}
    payload = {"at": "2026-03-01T00:00:00Z", "seconds": 1.5, "checks": 12, "findings": [finding]}
    async with database.transaction() as connection:
        await record_events(connection, [NewEvent(EventKind.AUDIT, None, None, payload)])
    report = await last_audit(database)
    assert (report.ok, report.checks, report.seconds) == (False, 12, 1.5)
    [found] = report.findings
    assert (found.check, found.message, found.count, found.examples) == ("c", "rows", 2, [1])


async def test_messages_without_a_webhook_go(database: Database) -> None:
    await spoil(database, "INSERT INTO outbox (topic, ref_id, lane) VALUES ('webhooks', 1, 7)")
    assert await clean_up_webhooks(database) == 1


def test_the_command_shows_findings(
    database_url: str, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    root = typer.Typer()
    root.command("audit")(audit_command)
    answered = CliRunner().invoke(root, [], obj=Flags())
    assert "12 checks in" in answered.stderr
    assert '"findings": []' in CliRunner().invoke(root, ["--json"], obj=Flags()).stdout
