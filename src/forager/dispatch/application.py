"""The Celery application: two tasks, whose bodies are claims."""

from __future__ import annotations

from collections.abc import Callable

from forager.dispatch.errors import CeleryMissing
from forager.dispatch.inbox import Inbox
from forager.dispatch.message import checked_ids
from forager.dispatch.topology import STAGES, routes_of
from forager.settings import Settings
from forager.tasks.hints import HintsClosed

try:
    from celery import Celery
    from celery.exceptions import Reject
except ImportError:
    raise CeleryMissing from None

CONSUMER = "forager.dispatch.consumer:HintConsumer"


def make_app(settings: Settings, inbox_of: Callable[[], Inbox]) -> Celery:
    """The application of a worker whose stages are behind that inbox."""
    from forager.dispatch.consumer import queue_of

    assert settings.broker_url is not None
    queues = [queue_of(route) for route in routes_of(settings.region)]
    app = Celery("forager", set_as_current=False)
    app.conf.update(
        broker_url=settings.broker_url.get_secret_value(),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        result_backend=None,
        task_ignore_result=True,
        accept_content=["json"],
        # the body is the claim: acknowledged when that is committed, refused if it cannot be read
        task_acks_late=True,
        task_acks_on_failure_or_timeout=False,
        task_reject_on_worker_lost=True,
        task_queues=queues,
        task_default_queue=queues[0].name,
        task_create_missing_queues=False,
        worker_prefetch_multiplier=1,
        worker_consumer=CONSUMER,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
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
