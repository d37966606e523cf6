"""Switched on by settings alone; switched off, there is no Celery."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import SecretStr

from forager.checks import Level
from forager.db.database import Database
from forager.db.ids import new_id
from forager.dispatch.checks import check_broker
from forager.dispatch.services import dispatch_services
from forager.errors import InvalidInput
from forager.settings import Dispatch, Settings, load_settings

URL = "amqp://user:s3cret@127.0.0.1:1//"


def test_postgresql_is_the_default() -> None:
    assert load_settings().dispatch is Dispatch.POSTGRES


def test_celery_needs_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_DISPATCH", "celery")
    with pytest.raises(InvalidInput, match="but broker_url is not set"):
        load_settings()
    monkeypatch.setenv("FORAGER_BROKER_URL", URL)
    assert load_settings().dispatch is Dispatch.CELERY


def test_a_broker_is_an_amqp_url_and_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_BROKER_URL", "redis://:s3cret@127.0.0.1")
    with pytest.raises(InvalidInput, match="expected amqp://") as raised:
        load_settings()
    assert "s3cret" not in str(raised.value)
    monkeypatch.setenv("FORAGER_BROKER_URL", URL)
    assert "s3cret" not in repr(load_settings())


def test_children_receive_the_password(settings: Settings) -> None:
    with_broker = settings.model_copy(update={"broker_url": SecretStr(URL)})
    assert with_broker.for_child_process()["broker_url"] == URL


def test_what_runs_beside_the_scheduler(database: Database, settings: Settings) -> None:
    def names(wanted: Settings) -> list[str]:
        return [service.name for service in dispatch_services(database, wanted, new_id())]

    changes: dict[str, Any] = {"dispatch": Dispatch.CELERY, "broker_url": SecretStr(URL)}
    assert names(settings) == ["dispatch cleanup"]
    assert names(settings.model_copy(update=changes)) == ["dispatch relay", "dispatch sweep"]


async def test_the_doctor_misses_the_broker(database: Database, settings: Settings) -> None:
    changes: dict[str, Any] = {"dispatch": Dispatch.CELERY, "broker_url": SecretStr(URL)}
    found = await check_broker(database, settings.model_copy(update=changes))
    assert found.level is Level.FAIL
    assert "0 messages wait for it, and none is lost" in found.message
    assert "s3cret" not in f"{found.message} {found.next_step}"


def test_with_postgresql_alone_no_celery_is_imported() -> None:
    code = """
import sys
import forager.background, forager.tasks.workers.process
import forager.cli.system.worker, forager.cli.system.up
import forager.doctor.examination, forager.dispatch.services
assert not {"celery", "kombu", "amqp"} & set(sys.modules), sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
