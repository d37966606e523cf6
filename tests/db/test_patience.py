"""An outage of the database, as a service in the background meets it."""

from __future__ import annotations

import asyncio

import orjson
import psycopg
import pytest

from forager.db.patience import Patience
from forager.errors import DiskFull
from forager.logs import configure_logs, get_logger

WORDS = "nothing is done now"
OVER = "the trouble is over"
Said = list[dict[str, object]]


def said(capsys: pytest.CaptureFixture[str]) -> Said:
    lines = [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in lines if line["level"] in ("warning", "info", "error")]


@pytest.fixture(autouse=True)
def spoken_logs(quiet_logs: None) -> None:
    configure_logs("info", "json")


def test_a_long_outage_is_said_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    patience = Patience(get_logger("test"), WORDS, said_every=0.0)
    for _ in range(3):
        with patience:
            raise DiskFull("no space")
    patience.over()
    patience.over()
    assert [line["event"] for line in said(capsys)] == [WORDS] * 3 + [OVER]


def test_only_trouble_that_passes_is_endured() -> None:
    patience = Patience(get_logger("test"), WORDS, also=(TimeoutError,))
    with patience:
        raise TimeoutError
    with patience:
        raise psycopg.OperationalError
    assert patience.is_needed
    with pytest.raises(KeyError), patience:
        raise KeyError("a bug")
    with pytest.raises(asyncio.CancelledError), patience:
        raise asyncio.CancelledError
