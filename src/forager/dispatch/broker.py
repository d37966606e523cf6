"""The client of the broker: blocking, used from one thread, with a limit for every call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from forager.dispatch.message import DEAD, DEAD_ARGUMENTS, EXCHANGE, QUEUE_ARGUMENTS, TaskMessage
from forager.errors import ForagerError, InvalidInput, error_text

CONNECT_LIMIT = 5.0
# for one batch, from the first message to the last confirmation; a transaction is open meanwhile,
# and PostgreSQL ends transactions that are idle for ten seconds
CONFIRM_LIMIT = 8.0
CLOSE_LIMIT = 1.0

Answer = TypeVar("Answer")


class Broker:
    """One connection, opened on first use and dropped after an error."""

    def __init__(self, url: str) -> None:
        try:
            import amqp
            from kombu import Connection
            from kombu.exceptions import KombuError
        except ImportError:
            raise CeleryMissing from None
        self._message = amqp.Message
        self._client = Connection(
            url,
            connect_timeout=CONNECT_LIMIT,
            heartbeat=0,  # what is silent is found by its limit
            transport_options={"read_timeout": CONFIRM_LIMIT, "write_timeout": CONFIRM_LIMIT},
        )
        errors = (*self._client.connection_errors, *self._client.channel_errors)
        self._transient_errors = (*errors, KombuError, OSError)
        # errors of one queue, which close the channel
        self._refusals = tuple(self._client.channel_errors)
        self._channel: Any = None
        self._declared: set[str] = set()
        self._unconfirmed: set[int] = set()
        self._not_stored: set[int] = set()
        self._returned: dict[str, str] = {}
        self._sent = 0

    def publish(self, messages: Sequence[TaskMessage]) -> dict[int, str]:
        """Which were refused, by their place, and why; all others are confirmed.

        If it raises, none counts as sent, though some may arrive.
        """
        return self._call(lambda: self._publish(messages))

    def depths(self, queues: Iterable[str]) -> dict[str, int]:
        """The number of messages in each queue."""
        return self._call(lambda: {name: self._depth(name) for name in queues})

    def waiting(self, queues: Iterable[str]) -> set[str]:
        """The queues that have messages, or cannot be read."""
        return self._call(lambda: {name for name in queues if self._may_wait(name)})

    def close(self) -> None:
        """Close the connection; the next message opens it again."""
        self._channel = None
        self._declared.clear()
        with suppress(Exception):  # it is thrown away, whatever it says to that
            self._client.collect(CLOSE_LIMIT)

    def _call(self, request: Callable[[], Answer]) -> Answer:
        try:
            self._open()
            return request()
        except BrokerUnavailable:
            self.close()
            raise
        except self._transient_errors as error:
            self.close()
            raise BrokerUnavailable(f"the broker does not answer: {error_text(error)}") from None

    def _open(self) -> None:
        if self._channel is not None:
            return
        self._client.connect()
        channel = self._client.connection.channel()
        channel.confirm_select()
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)
        channel.events["basic_return"].add(self._on_return)
        self._sent = 0
        self._unconfirmed.clear()
        declare_exchanges(channel)
        self._channel = channel

    def _reopen(self) -> None:
        self.close()
        self._open()

    def _declare(self, queue: str) -> None:
        if queue not in self._declared:
            declare_queue(self._channel, queue)
            self._declared.add(queue)

    def _depth(self, queue: str) -> int:
        if queue != DEAD:
            self._declare(queue)
        answer = self._channel.queue_declare(queue, passive=True)
        return int(answer.message_count)

    def _may_wait(self, queue: str) -> bool:
        try:
            return self._depth(queue) > 0
        except self._refusals:
            self._reopen()
            return True

    def _publish(self, messages: Sequence[TaskMessage]) -> dict[int, str]:
        limit = time.monotonic() + CONFIRM_LIMIT
        queues = [message.route.queue for message in messages]
        closed = self._declare_all(dict.fromkeys(queues))
        self._not_stored.clear()
        self._returned.clear()
        first = self._sent + 1
        sent = [place for place, queue in enumerate(queues) if queue not in closed]
        for place in sent:
            self._send(messages[place])
        self._await_confirmations(limit)
        not_taken = closed | self._returned
        refused = {sent[tag - first]: "it could not store a message" for tag in self._not_stored}
        if not_taken:
            refused |= {n: not_taken[name] for n, name in enumerate(queues) if name in not_taken}
        return refused

    def _declare_all(self, queues: Iterable[str]) -> dict[str, str]:
        """The queues that cannot be used, for example because of other arguments, and why."""
        closed: dict[str, str] = {}
        for queue in queues:
            try:
                self._declare(queue)
            except self._refusals as error:
                closed[queue] = error_text(error)
                self._reopen()
        return closed

    def _send(self, message: TaskMessage) -> None:
        self._sent += 1
        self._unconfirmed.add(self._sent)
        made = self._message(message.body(), **message.properties())
        self._channel.basic_publish(made, EXCHANGE, routing_key=message.route.queue, mandatory=True)

    def _await_confirmations(self, limit: float) -> None:
        while self._unconfirmed:
            left = limit - time.monotonic()
            if left <= 0:
                raise BrokerUnavailable("the broker takes no messages: its disk may be full")
            with suppress(TimeoutError):
                self._client.connection.drain_events(timeout=left)

    def _on_ack(self, tag: int, multiple: bool) -> None:
        self._unconfirmed -= self._meant(tag, multiple)

    def _on_nack(self, tag: int, multiple: bool) -> None:
        meant = self._meant(tag, multiple)
        self._not_stored |= meant
        self._unconfirmed -= meant

    def _meant(self, tag: int, multiple: bool) -> set[int]:
        if multiple:
            return {sent for sent in self._unconfirmed if sent <= tag}
        return {tag} & self._unconfirmed

    def _on_return(self, error: Exception, _: str, routing_key: str, __: object) -> None:
        # the queue was deleted; it is declared again with the next message
        self._returned[routing_key] = str(error)
        self._declared.discard(routing_key)


def declare_exchanges(channel: Any) -> None:
    """Create the exchanges; those that exist stay."""
    channel.exchange_declare(EXCHANGE, "direct", durable=True, auto_delete=False)
    channel.exchange_declare(DEAD, "fanout", durable=True, auto_delete=False)
    channel.queue_declare(DEAD, durable=True, auto_delete=False, arguments=DEAD_ARGUMENTS)
    channel.queue_bind(DEAD, DEAD)


def declare_queue(channel: Any, queue: str) -> None:
    """Create the queue of a route; one that exists stays."""
    channel.queue_declare(queue, durable=True, auto_delete=False, arguments=QUEUE_ARGUMENTS)
    channel.queue_bind(queue, EXCHANGE, routing_key=queue)


class BrokerUnavailable(ForagerError):
    """The broker cannot be reached, or does not answer."""


class CeleryMissing(InvalidInput):
    """Celery is configured, and not installed."""

    def __init__(self) -> None:
        super().__init__(
            "FORAGER_DISPATCH=celery needs Celery, which is not installed",
            hint="Install it with: pip install 'forager-crawler[celery]'",
        )
