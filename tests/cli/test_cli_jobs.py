"""The commands on jobs, in this process: each is one call of `run`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from forager.cli.main import run
from forager.crawl.reports.activity import ActivityReport
from forager.crawl.store.state import start_over, update_activity
from forager.db.database import open_database
from forager.db.ids import new_id
from forager.jobs.job import Job, Lease, NewJob
from forager.jobs.queue import Queue
from forager.processes.identity import process_name
from forager.settings import Settings

Capture = pytest.CaptureFixture[str]
Scene = Callable[[Queue], Coroutine[Any, Any, Job]]


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stage(settings: Settings) -> Callable[[Scene], Job]:
    """Bring the queue into some state before a command is run."""

    async def play(scene: Scene) -> Job:
        async with open_database(settings) as database:
            return await scene(Queue(database, settings))

    return lambda scene: asyncio.run(play(scene))


async def waiting(queue: Queue) -> Job:
    return (await queue.enqueue(NewJob(kind="selftest", source_id="a\x1b[31mb"))).job


async def claimed(queue: Queue) -> Job:
    await waiting(queue)
    return (await queue.claim(new_id(), kinds=["selftest"]))[0]


async def pausing(queue: Queue) -> Job:
    return await queue.pause((await claimed(queue)).id)


async def failed(queue: Queue) -> Job:
    job = await claimed(queue)
    assert job.worker_id is not None
    lease = Lease(job.id, job.lease, job.worker_id)
    done = await queue.fail(lease, "it \x1b]0;broke\x07 [bold]down[/bold]", permanent=True)
    assert done is not None
    return done


def test_a_pausing_job_is_shown_as_such(stage: Callable[[Scene], Job], capsys: Capture) -> None:
    job = stage(pausing)
    assert run(["jobs", "list"]) == 0
    assert "pausing" in capsys.readouterr().out
    assert run(["jobs", "show", str(job.id)[:30], "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["status"] == "pausing"
    assert [event["move"] for event in shown["last_events"]] == ["enqueue", "claim", "pause"]


async def put_off(queue: Queue) -> Job:
    """A crawl whose host cannot serve its robots.txt."""
    job = await claimed(queue)
    assert job.worker_id is not None
    lease, reason = Lease(job.id, job.lease, job.worker_id), "robots.txt answered 503"
    async with open_database(queue.settings) as database:
        await database.run(start_over, job.id)
        report = ActivityReport(lease, reason, seconds=None, pace=0.0, elapsed=1.0)
        await database.run(update_activity, [report])
    released = await queue.release(lease, reason=reason, delay=630.0)
    assert released is not None
    return released


def test_lists_say_what_a_crawl_waits_for(stage: Callable[[Scene], Job], capsys: Capture) -> None:
    job = stage(put_off)
    assert run(["jobs", "list"]) == 0
    listed = capsys.readouterr()
    assert "robots.txt answered 503, next request in 10 min" in listed.out
    assert "1 waiting for their host" in listed.err
    for options, count in (
        (["--activity", "waiting-for-host"], 1),
        (["--activity", "stalled"], 0),
        (["--host", "none.example"], 0),
    ):
        assert run(["jobs", "list", *options, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["items"]) == count
    assert run(["jobs", "work", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert summary["activities"]["waiting-for-host"] == 1
    assert run(["jobs", "show", str(job.id), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["waiting"] == "robots.txt answered 503, next request in 10 min"


def test_what_a_job_says_cannot_steer_the_terminal(
    stage: Callable[[Scene], Job], capsys: Capture
) -> None:
    job = stage(failed)
    for command in (["list"], ["show", str(job.id)], ["events", str(job.id)]):
        assert run(["jobs", *command]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "[bold]down[/bold]" in out


def test_each_id_is_reported_and_the_worst_code_returned(
    stage: Callable[[Scene], Job], capsys: Capture
) -> None:
    job = stage(waiting)
    assert run(["jobs", "retry", str(job.id), "beef", "xyz"]) == 4
    err = capsys.readouterr().err
    assert "it is pending" in err
    assert "there is no job beef" in err
    assert "'xyz' is not a job id" in err
    assert run(["jobs", "pause", str(job.id), "--reason", "lunch", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "paused"
    assert run(["jobs", "resume", str(job.id)]) == 0
    assert run(["jobs", "cancel", str(job.id)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{job.id} is cancelled"
    assert run(["jobs", "events", str(job.id), "--limit", "1", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["next_cursor"] == str(first["items"][0]["id"])
    assert run(["jobs", "events", str(job.id), "--cursor", first["next_cursor"]]) == 0
    assert "lunch" in capsys.readouterr().out


def test_what_destroys_needs_yes_off_a_terminal(
    stage: Callable[[Scene], Job], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage(failed)
    with Path(os.devnull).open() as closed:
        monkeypatch.setattr("sys.stdin", closed)
        for command in (
            ["jobs", "prune"],
            ["jobs", "cancel", "a", "b"],
            ["db", "downgrade", "base"],
        ):
            assert run(command) == 2
            assert "--yes" in capsys.readouterr().err
    assert run(["jobs", "prune", "--older-than-days", "0", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": 1}
    assert run(["jobs", "list", "--status", "failed"]) == 0
    assert "No jobs found" in capsys.readouterr().err


def test_work_counts_jobs_by_state(stage: Callable[[Scene], Job], capsys: Capture) -> None:
    stage(waiting)
    assert run(["jobs", "work", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["pending"] == 1
    assert run(["jobs", "work"]) == 0
    assert "pending" in capsys.readouterr().out


def test_the_watchdog_finds_nothing_to_do(capsys: Capture) -> None:
    assert run(["watchdog", "--once", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"items": [], "next_cursor": None, "tasks": []}


async def abandoned(queue: Queue) -> Job:
    """A task is held by a worker of this machine whose process is gone."""
    job = await waiting(queue)
    async with queue._database.transaction() as connection:
        await connection.execute(
            """
            WITH worker AS (
                INSERT INTO workers (id, host, pid, process, version, capacity, state, role)
                VALUES (%(id)s, 'here', 1, %(process)s, '1', 1, 'running', 'tasks')
            ), domain AS (
                INSERT INTO domains (domain_name, base_url)
                VALUES ('shop.example', 'http://shop.example/')
                RETURNING id
            )
            INSERT INTO crawl_tasks (domain_id, url, url_hash, status, worker_id)
            SELECT id, 'http://shop.example/1', '1', 'crawling', %(id)s FROM domain
            """,
            {"id": new_id(), "process": f"{process_name()}1"},
        )
    return job


def test_the_watchdog_gives_back_tasks_too(stage: Callable[[Scene], Job], capsys: Capture) -> None:
    stage(abandoned)
    assert run(["watchdog", "--once"]) == 0
    assert "is queued, retry 1 of 3" in capsys.readouterr().out
    assert run(["watchdog", "--once"]) == 0
    assert "No job or task" in capsys.readouterr().err


def test_the_schema_goes_down_and_up(capsys: Capture) -> None:
    assert run(["db", "downgrade", "base", "--yes"]) == 0
    assert capsys.readouterr().out == "the database has schema none\n"
    assert run(["db", "current", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["database"] is None
    assert run(["db", "upgrade"]) == 0
    assert run(["db", "downgrade", "nonsense", "--yes"]) == 2


def test_a_global_option_behind_the_command_is_explained(capsys: Capture) -> None:
    assert run(["jobs", "list", "--home", "/x"]) == 2
    assert "goes before the command" in capsys.readouterr().err


def test_unexpected_errors_are_reported_briefly(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_text: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("forager.cli.output.show_json", broken)
    assert run(["config", "show", "--json"]) == 1
    err = capsys.readouterr().err
    assert "RuntimeError: a bug" in err
    assert "Traceback" not in err
    assert run(["--log-level", "debug", "config", "show", "--json"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_config_show_says_where_values_come_from(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forager.toml").write_text("poll_interval = 2\nmax_retries = 5")
    monkeypatch.setenv("FORAGER_MAX_RETRIES", "7")
    monkeypatch.setenv("FORAGER_DATABASE_URL", "postgresql://me:p@ss/w@host/db?password=p@ss")
    assert run(["--log-format", "json", "config", "show", "--json"]) == 0
    out = capsys.readouterr().out
    shown = {item["name"]: (item["value"], item["origin"]) for item in json.loads(out)["items"]}
    assert shown["poll_interval"] == (2, "file")
    assert shown["max_retries"] == (7, "environment")
    assert shown["log_format"] == ("json", "flag")
    assert shown["stale_after"] == (120, "default")
    assert "p@ss" not in out
    assert "postgresql://me:***@" in out
