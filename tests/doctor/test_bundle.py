"""The support bundle: complete enough to help, and free of content and secrets."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import psycopg

from forager.db.ids import new_id
from support.cli import forager

SECRETS = ("hunter2", "shop.example", "lamp-of-aunt-mary")


def test_bundle_describes_the_installation_without_content(
    database_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO crawl_jobs (id, kind, payload, status, completed_at, error_message)"
            " VALUES (%s, 'crawl', '{}', 'failed', now(), %s)",
            (new_id(), "cannot fetch https://user:hunter2@shop.example/lamp-of-aunt-mary: refused"),
        )
    file = tmp_path / "bundle.json"
    done = forager(
        "support-bundle",
        file,
        FORAGER_HOME=str(tmp_path),
        FORAGER_DATABASE_URL=database_url,
        FORAGER_BROKER_URL="amqp://me:hunter2@127.0.0.1/",
    )
    assert done.code == 0, done.err
    text = file.read_text()
    bundle = json.loads(text)
    assert not [secret for secret in SECRETS if secret in text]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert bundle["versions"]["packages"]["psycopg"]
    assert {check["check"] for check in bundle["doctor"]} >= {"connection", "schema"}
    assert not any(check["examples"] for check in bundle["doctor"])
    assert bundle["failed_jobs"][0]["error"] == "cannot fetch <url> refused"
    assert bundle["settings"]["broker_url"] == "amqp://me:***@127.0.0.1/"
    assert "forager_jobs" in bundle["metrics"]


def test_bundle_is_written_without_a_database(tmp_path: Path) -> None:
    file = tmp_path / "bundle.json"
    dead = "postgresql://me:hunter2@127.0.0.1:1/none"
    assert forager("support-bundle", file, FORAGER_DATABASE_URL=dead).code == 0
    bundle = json.loads(file.read_text())
    assert bundle["database_error"]
    assert "hunter2" not in file.read_text()


def test_a_bundle_that_cannot_be_written_is_a_wrong_argument(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "bundle.json"
    dead = "postgresql://me@127.0.0.1:1/none"
    refused = forager("support-bundle", file, FORAGER_DATABASE_URL=dead)
    assert (refused.code, f"{file} cannot be written" in refused.err) == (2, True)
