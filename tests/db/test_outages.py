"""An outage of the database, as a service in the background meets it."""

from __future__ import annotations

import asyncio

import orjson
import psycopg
import pytest

from forager.db.outages import Outage
from forager.errors import DiskFull
from forager.logs import configure_logs, get_logger

WORDS = "nothing is done now"
OVER = "recovered"
Said = list[dict[str, object]]


def said(capsys: pytest.CaptureFixture[str]) -> Said:
    lines = [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in lines if line["level"] in ("warning", "info", "error")]


@pytest.fixture(autouse=True)
def spoken_logs(quiet_logs: None) -> None:
    configure_logs("info", "json")


def test_a_long_outage_is_said_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    outage = Outage(get_logger("test"), WORDS, said_every=0.0)
    for _ in range(3):
        with outage:
            raise DiskFull("no space")
    outage.over()
    outage.over()
    assert [line["event"] for line in said(capsys)] == [WORDS] * 3 + [OVER]


def test_only_trouble_that_passes_is_endured() -> None:
    outage = Outage(get_logger("test"), WORDS, also=(TimeoutError,))
    with outage:
        raise TimeoutError
    with outage:
        raise psycopg.OperationalError
    assert outage.lasts
    with pytest.raises(KeyError), outage:
        raise KeyError("a bug")
    with pytest.raises(asyncio.CancelledError), outage:
        raise asyncio.CancelledError
