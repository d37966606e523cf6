"""The Celery application: tasks that claim Forager tasks, and the consumer thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import asynccontextmanager
from typing import Any

from forager.dispatch.broker import CeleryMissing, declare_exchanges
from forager.dispatch.message import (
    EXCHANGE,
    QUEUE_ARGUMENTS,
    STAGES,
    Route,
    checked_ids,
    routes_of,
)
from forager.errors import error_text
from forager.failures.cause import one_line
from forager.logs import ThrottledHandler, get_logger
from forager.render.finding import find_browser
from forager.settings import Settings
from forager.tasks.hints import OFFER_LIMIT, Hints, HintsClosed
from forager.tasks.stages.attempt import Stage

try:
    from celery import Celery
    from celery.exceptions import Reject
    from celery.utils.nodenames import gethostname, nodename
    from celery.worker import WorkController, state
    from celery.worker.consumer import Consumer
    from kombu import Exchange, Queue
except ImportError:
    raise CeleryMissing from None

log = get_logger("dispatch")

CONSUMER = "forager.dispatch.application:HintConsumer"


def make_app(settings: Settings, inbox_of: Callable[[], Inbox]) -> Celery:
    """The Celery application of a worker: its queues, and what it does with messages."""
    assert settings.broker_url is not None
    renders = find_browser(settings).path is not None
    routes = routes_of(settings.region, settings.task_stages, renders=renders)
    queues = [queue_of(route) for route in routes]
    app = Celery("forager", set_as_current=False)
    app.conf.update(
        broker_url=settings.broker_url.get_secret_value(),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        result_backend=None,
        task_ignore_result=True,
        accept_content=["json"],
        # the task is the claim: acknowledged once it is committed, rejected if unreadable
        task_acks_late=True,
        task_acks_on_failure_or_timeout=False,
        task_reject_on_worker_lost=True,
        task_queues=queues,
        task_default_queue=queues[0].name,
        task_create_missing_queues=False,
        worker_prefetch_multiplier=1,
        worker_consumer=CONSUMER,
        worker_enable_remote_control=settings.broker_monitoring,
        worker_send_task_events=settings.broker_monitoring,
        # An exclusive queue stays locked until the broker notices that a connection is lost, and
        # the worker could not return before that. These expire ten seconds after their last use.
        control_queue_exclusive=False,
        control_queue_durable=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )
    for stage in STAGES:
        _register(app, stage, inbox_of)
    return app


def _register(app: Celery, stage: str, inbox_of: Callable[[], Inbox]) -> None:
    def claim(named: object) -> None:
        task_ids = checked_ids(named)
        try:
            inbox_of().put(stage, task_ids)
        except HintsClosed:
            raise Reject("the worker stops", requeue=True) from None

    app.task(claim, name=f"forager.{stage}")


STAGE_OF = {"crawl": Stage.DOWNLOAD, "parse": Stage.PARSE, "render": Stage.DOWNLOAD}
# the loop has two timeouts; without a response it is frozen
LIMIT = 3 * OFFER_LIMIT


class Inbox:
    """Passes received tasks from the thread of the consumer to the claims of the worker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hints: Hints) -> None:
        self._loop = loop
        self._hints = hints

    def put(self, stage: str, task_ids: Sequence[int]) -> None:
        """Wait until the tasks were claimed or cannot be; raises HintsClosed at the end."""
        offered = self._hints.of(STAGE_OF[stage]).offer(task_ids)
        try:
            asyncio.run_coroutine_threadsafe(offered, self._loop).result(LIMIT)
        except TookTooLong:
            raise HintsClosed from None
        except (CancelledError, RuntimeError):  # the loop is closed
            offered.close()
            raise HintsClosed from None


LOG_EVERY = 60.0
LOGGERS = ("celery", "kombu", "amqp")


def listen_to_celery() -> None:
    """Log each source line of Celery at most once per minute."""

    def write(record: logging.LogRecord, _held_back: int) -> None:
        log.warning("celery", message=one_line(record.getMessage()))

    handler = ThrottledHandler(
        write, kind=lambda record: f"{record.pathname}:{record.lineno}", every=LOG_EVERY
    )
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False


# workers need no gossip: their state is in the database
ALONE = {"without_gossip": True, "without_mingle": True}


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
    """The queue of a route, consumed in turns with those of other bands."""
    return BandQueue(
        route.queue,
        Exchange(EXCHANGE, "direct", durable=True),
        routing_key=route.queue,
        durable=True,
        queue_arguments=QUEUE_ARGUMENTS,
        share=route.band.share,
    )


class HintConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer, reduced to consuming and to what its monitoring tools need."""

    class Blueprint(Consumer.Blueprint):  # type: ignore[misc]
        # without delayed delivery, which would add thirty queues to quorum queues
        default_steps = (
            "celery.worker.consumer.connection:Connection",
            "celery.worker.consumer.events:Events",
            "celery.worker.consumer.heart:Heart",
            "celery.worker.consumer.control:Control",
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
        is_visible = kwargs["app"].conf.worker_send_task_events
        options = (worker_options or {}) | ALONE | {"without_heartbeat": not is_visible}
        super().__init__(on_task_request, worker_options=options, **kwargs)

    def connect(self) -> Any:
        connection = super().connect()
        declare_exchanges(connection.default_channel)
        return connection

    def register_with_event_loop(self, hub: Any) -> None:
        """Wake the loop often: it sleeps for up to ten seconds, and stops only in between."""
        super().register_with_event_loop(hub)
        hub.call_repeatedly(TURN_EVERY, lambda: None)

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Reject an unreadable message: Celery would acknowledge it."""
        log.error("a message cannot be read", reason=str(exc)[:200])
        message.reject()


# the loop wakes once per second, and its current task ends when the hints are closed
STOP_LIMIT = 10.0


@asynccontextmanager
async def receiving(settings: Settings, hints: Hints) -> AsyncIterator[None]:
    """Consume while the context is open; the hints must be closed before it ends."""
    inbox = Inbox(asyncio.get_running_loop(), hints)
    listen_to_celery()
    thread = CeleryThread(make_app(settings, lambda: inbox))
    thread.start()
    try:
        yield
    finally:
        await asyncio.to_thread(thread.stop)


class CeleryThread:
    """Runs the consumer in a thread, one claim at a time."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)
        self._stopping = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        state.should_stop = os.EX_OK
        self._thread.join(STOP_LIMIT)
        if self._thread.is_alive():
            log.warning("the consumer of the broker does not stop, and is left behind")

    def _run(self) -> None:
        try:
            # a machine has several workers, and a name has one mailbox
            name = nodename(f"forager-{os.getpid()}", gethostname())
            WorkController(app=self._app, hostname=name, pool="solo", concurrency=1).start()
        except Exception as error:
            log.error("the consumer of the broker has failed", error=error_text(error))
        if not self._stopping:
            # without a consumer the worker is useless: the supervisor starts another process
            with contextlib.suppress(ProcessLookupError):
                os.kill(os.getpid(), signal.SIGTERM)
