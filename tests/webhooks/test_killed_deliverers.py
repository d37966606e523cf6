"""A killed or silent deliverer loses no message."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from forager.db.database import Database
from forager.outbox import store as outbox
from forager.outbox.message import Lane
from forager.outbox.recovery import OutboxRecovery
from forager.services.report import identify
from forager.services.store import upsert_process
from forager.settings import Settings
from forager.webhooks.delivery import Deliverer
from forager.webhooks.service import Webhooks
from forager.webhooks.webhook import TOPIC
from support.sql import execute
from webhooks.listening import happen, listen, states
from webhooks.receiver import Receiver, answering


@asynccontextmanager
async def deliverer_process(
    database_url: str, settings: Settings
) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {
        **os.environ,
        "FORAGER_HOME": str(settings.home),
        "FORAGER_DATABASE_URL": database_url,
        "FORAGER_LOG_LEVEL": "critical",
    }
    script = Path(__file__).with_name("deliverer_process.py")
    process = await asyncio.create_subprocess_exec(sys.executable, str(script), env=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_killed_between_sending_and_marking_it_is_sent_again(
    database: Database,
    database_url: str,
    settings: Settings,
    webhooks: Webhooks,
    deliverer: Deliverer,
    receiver: Receiver,
) -> None:
    issued = await listen(webhooks, receiver)
    receiver.answer = None  # it has the message, and the sender does not know that
    await happen(database, 3)
    async with deliverer_process(database_url, settings) as process, asyncio.timeout(60):
        await receiver.arrived.wait()
        process.kill()
        await process.wait()

    assert await states(webhooks, issued.webhook.id) == ["waiting"] * 3
    receiver.answer = answering(200)
    assert await deliverer.run_once() == 0  # the dead one's lease still counts
    # its process is known to be gone, long before the lease ends
    assert await OutboxRecovery(database, settings).run_once() == 3
    assert await deliverer.run_once() == 3
    assert {got.json["data"]["n"] for got in receiver.got} == {0, 1, 2}


async def claim_as(database: Database, webhooks: Webhooks, receiver: Receiver) -> UUID:
    """Messages claimed by a process of another machine that has just reported."""
    identity = identify("worker", "another machine 1 2")
    issued = await listen(webhooks, receiver)
    await happen(database, 3)
    async with database.connection() as connection:
        await upsert_process(connection, identity, [])
        claimed = await outbox.claim(
            connection, [Lane(TOPIC, issued.webhook.id)], lease=3600, claimed_by=identity.id
        )
    assert len(claimed) == 3
    return identity.id


async def test_messages_of_a_silent_process_are_released_at_the_second_check(
    database: Database,
    settings: Settings,
    webhooks: Webhooks,
    deliverer: Deliverer,
    receiver: Receiver,
) -> None:
    process_id = await claim_as(database, webhooks, receiver)
    recovery = OutboxRecovery(database, settings)
    assert [await recovery.run_once(), await recovery.run_once()] == [0, 0], "it is alive"
    await execute(
        database,
        "UPDATE service_processes SET last_seen = now() - interval '1 day' WHERE id = %s",
        process_id,
    )
    assert [await recovery.run_once(), await recovery.run_once()] == [0, 3]
    assert await deliverer.run_once() == 3


async def test_a_deliverer_that_reports_again_keeps_its_messages(
    database: Database, settings: Settings, webhooks: Webhooks, receiver: Receiver
) -> None:
    await claim_as(database, webhooks, receiver)
    recovery = OutboxRecovery(database, settings)
    for age in ("1 day", "1 hour"):  # silent at both checks, with a heartbeat between them
        await execute(
            database, f"UPDATE service_processes SET last_seen = now() - interval '{age}'"
        )
        assert await recovery.run_once() == 0
