"""The servers themselves: they start, break at one's command, and come back."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import psycopg
import pytest

from services.servers.minio import MinIO
from services.servers.opensearch import OpenSearch
from services.servers.pgbouncer import PgBouncer
from services.servers.rabbitmq import RabbitMQ
from services.servers.server import GUARD


def test_a_broker_stops_and_starts_again(rabbitmq: RabbitMQ) -> None:
    rabbitmq.stop_app()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", rabbitmq.port), timeout=5)
    rabbitmq.start_app()
    assert rabbitmq.is_ready()


def test_a_killed_broker_comes_back_at_the_same_place(rabbitmq: RabbitMQ) -> None:
    url = rabbitmq.url
    rabbitmq.kill()
    rabbitmq.start()
    assert rabbitmq.is_ready()
    assert rabbitmq.url == url


def test_a_full_disk_is_an_alarm_and_then_none(rabbitmq: RabbitMQ) -> None:
    with rabbitmq.disk_alarm():
        assert "disk" in rabbitmq.control("status", "--formatter", "json").split("alarms")[1][:200]
    assert '"alarms":[]' in rabbitmq.control("status", "--formatter", "json")


def test_object_storage_makes_buckets_and_survives_a_kill(minio: MinIO) -> None:
    minio.make_bucket("first")
    minio.kill()
    minio.start()
    minio.make_bucket("first")
    assert minio.is_ready()


def test_a_search_engine_stems_words_and_survives_a_kill(opensearch: OpenSearch) -> None:
    opensearch.kill()
    opensearch.start()
    question = json.dumps({"analyzer": "english", "text": "running crawlers"}).encode()
    request = urllib.request.Request(
        f"{opensearch.url}/_analyze", question, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert [token["token"] for token in json.load(answer)["tokens"]] == ["run", "crawler"]


def test_a_pool_leads_to_the_database(pgbouncer: PgBouncer, database_url: str) -> None:
    with psycopg.connect(pgbouncer.through(database_url)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert pgbouncer.show("POOLS")


def test_a_server_ends_with_its_starter(tmp_path: Path) -> None:
    """Also what it left behind as a daemon."""
    shell = f"setsid sleep 1001 & echo $! > {tmp_path}/daemon; exec sleep 1002"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(GUARD), "sh", "-c", shell], stdout=subprocess.PIPE
    )
    assert starter.stdout is not None
    with starter, starter.stdout as said:
        guard = psutil.Process(int(said.readline()))
        starter.kill()
    daemon = (tmp_path / "daemon").read_text()
    psutil.wait_procs([guard], timeout=60)
    assert not guard.is_running()
    assert not psutil.pid_exists(int(daemon))


STARTER = """
import subprocess, sys, time, pathlib
guard = subprocess.Popen([sys.executable, *sys.argv[1:]], stdin=subprocess.PIPE)
daemon = pathlib.Path(sys.argv[-1].split(">")[1].split(";")[0].strip())
while not (daemon.exists() and daemon.read_text().strip()):
    time.sleep(0.02)
print(guard.pid, flush=True)
time.sleep(600)
"""
