"""How Celery consumes here: quorum queues by shares, nothing beside them, and nothing dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer
from kombu import Exchange, Queue

from forager.dispatch.broker import declare_ground
from forager.dispatch.topology import EXCHANGE, QUEUE_ARGUMENTS, Route
from forager.logs import get_logger

log = get_logger("dispatch")

# workers tell each other nothing: who is there, and who does what, is in the database
ALONE = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}


TURN_EVERY = 0.25


class BandQueue(Queue):  # type: ignore[misc]
    """A queue of which a worker holds as many messages as its band's share is.

    With quorum queues a prefetch count holds for the consumers that begin after it was set. A
    worker that is behind handles messages as they arrive, and each makes room for one of its band.
    """

    attrs = (*Queue.attrs, ("share", int))
    share = 1

    def consume(self, *args: Any, **kwargs: Any) -> Any:
        self.channel.basic_qos(0, self.share, False)
        return super().consume(*args, **kwargs)


def queue_of(route: Route) -> BandQueue:
    return BandQueue(
        route.queue,
        Exchange(EXCHANGE, "direct", durable=True),
        routing_key=route.queue,
        durable=True,
        queue_arguments=QUEUE_ARGUMENTS,
        share=route.band.share,
    )


class HintConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer without what it does beside consuming."""

    class Blueprint(Consumer.Blueprint):  # type: ignore[misc]
        # without the thirty queues of delayed delivery, that come with quorum queues
        default_steps = (
            "celery.worker.consumer.connection:Connection",
            "celery.worker.consumer.tasks:Tasks",
            "celery.worker.consumer.consumer:Evloop",
        )

    def __init__(
        self,
        on_task_request: Callable[..., Any],
        *,
        worker_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        options = (worker_options or {}) | ALONE
        super().__init__(on_task_request, worker_options=options, **kwargs)

    def connect(self) -> Any:
        connection = super().connect()
        declare_ground(connection.default_channel)
        return connection

    def register_with_event_loop(self, hub: Any) -> None:
        """Celery's loop sleeps up to ten seconds, deaf to whoever wants it to stop."""
        super().register_with_event_loop(hub)
        hub.call_repeatedly(TURN_EVERY, lambda: None)

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Celery would acknowledge it, and it would be gone."""
        log.error("a message cannot be read", reason=str(exc)[:200])
        message.reject()
