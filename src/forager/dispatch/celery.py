"""For Celery's own command: `celery -A forager.dispatch.celery worker`, in any of its pools.

Each process of the pool has stages of its own, which begin with it and end with it.
"""

from __future__ import annotations

from typing import Any

from celery import signals

from forager.dispatch.application import make_app
from forager.dispatch.stage import StageThread
from forager.dispatch.words import listen_to_celery
from forager.logs import configure_logs
from forager.settings import load_settings

settings = load_settings(dispatch="celery")
stage = StageThread(settings)
app = make_app(settings, stage.inbox)


def _set_up_logs(**_: Any) -> None:
    configure_logs(settings.log_level, settings.log_format)
    listen_to_celery()


def _begin(**_: Any) -> None:
    stage.start()


def _end(**_: Any) -> None:
    stage.stop()


signals.setup_logging.connect(_set_up_logs, weak=False)
# in each process of a pool, or in the only one
signals.worker_process_init.connect(_begin, weak=False)
signals.worker_process_shutdown.connect(_end, weak=False)
signals.worker_shutdown.connect(_end, weak=False)
