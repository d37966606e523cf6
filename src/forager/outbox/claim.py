"""A claim: messages that one process sends now. Those that it does not settle are released."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from forager.db.database import Connection, Database
from forager.db.outages import TRANSIENT_ERRORS
from forager.errors import LeaseLost
from forager.outbox import store
from forager.outbox.message import Failure, Message


class Claim:
    """Claimed messages, and which of them are not settled yet."""

    def __init__(self, database: Database, messages: Sequence[Message]) -> None:
        self._database = database
        self.messages = messages
        self.unsettled = {message.id for message in messages}

    async def settle(
        self,
        taken: Sequence[int] = (),
        failures: Sequence[Failure] = (),
        *,
        keep_record: bool = False,
        responses: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        """Acknowledge the messages that were taken, and schedule the next attempts of others.

        Responses, by message, are recorded with the last attempts.
        """
        async with self._database.transaction() as connection:
            if taken:
                acknowledge = store.mark_sent if keep_record else store.delete
                await acknowledge(connection, taken)
            if failures:
                await store.mark_failed(connection, failures)
            if responses:
                await store.record_responses(connection, responses)
        self.unsettled.difference_update(taken, (failure.message_id for failure in failures))

    @asynccontextmanager
    async def settling(self, *messages: Message) -> AsyncIterator[Connection]:
        """Acknowledge messages in the transaction of their effects, so that these happen once.

        Without arguments, all messages of the claim. Raises an error, which rolls the effects
        back, if another process has handled one of them.
        """
        ids = [message.id for message in messages or self.messages]
        async with self._database.transaction() as connection:
            yield connection
            if await store.delete(connection, ids) < len(ids):
                raise LeaseLost("messages were handled by another process")
        self.unsettled.difference_update(ids)


@asynccontextmanager
async def claimed(database: Database, messages: Sequence[Message]) -> AsyncIterator[Claim]:
    """Settle messages in the block; the others are due again when it ends, however it ends."""
    claim = Claim(database, messages)
    try:
        yield claim
    finally:
        if claim.unsettled:
            # while the database is unavailable they wait for the end of their lease
            with suppress(*TRANSIENT_ERRORS):
                await database.run(store.release, sorted(claim.unsettled))
