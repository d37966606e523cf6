"""What becomes of a job whose handler misbehaves: one retry, and the reason in its history."""

from __future__ import annotations

import os
import signal
from base64 import b64encode
from typing import Any

import pytest
from pydantic import SecretStr
from workshop import at_work, open_shop, worker_process

from forager.jobs.lifecycle import Status
from forager.secrets import Vault
from forager.settings import Settings
from support.waiting import gone, lives


@pytest.mark.parametrize(
    ("kind", "payload", "limits", "reason"),
    [
        ("fail", {}, {}, "ValueError: the handler raised (in fail, line "),
        ("stop unasked", {}, {}, "the handler stopped without being asked to"),
        ("leave", {"code": 0}, {}, "runner exited with code 0 before the job was finished"),
        ("leave", {"code": 7}, {}, "runner exited with code 7 before the job was finished"),
        ("exit politely", {}, {}, "the handler called sys.exit(5)"),
        ("be killed", {"signal": signal.SIGKILL}, {}, "runner was killed by SIGKILL"),
        ("be killed", {"signal": signal.SIGRTMIN + 1}, {}, "runner was killed by signal"),
        ("freeze", {}, {"stall_limit": 2.0}, "frozen: no sign of life for 2 s (stall_limit)"),
        (
            "wait for ever",
            {},
            {"stall_limit": 8.0, "progress_limit": 8.0},
            "stuck: no progress for 8 s (progress_limit)",
        ),
        ("wait for ever", {}, {"job_time_limit": 1.5}, "longer than 1.5 s (job_time_limit)"),
        ("swell", {}, {"job_memory_limit_mb": 200}, "more than 200 MB (job_memory_limit_mb)"),
    ],
)
async def test_a_broken_run_costs_one_retry_and_says_why(
    database_url: str,
    settings: Settings,
    kind: str,
    payload: dict[str, Any],
    limits: dict[str, Any],
    reason: str,
) -> None:
    async with open_shop(database_url, settings, retry_delay=600.0, **limits) as shop:
        async with at_work(shop) as supervisor:
            job_id = await shop.enqueue(kind, **payload)
            job = await shop.retried(job_id)
            assert (job.status, job.retry_count, job.worker_id) == (Status.PENDING, 1, None)
            assert reason in (job.error_message or "")
            assert await shop.reasons(job_id, "retry later") == [job.error_message]
            assert await shop.history(job_id) == ["enqueue", "claim", "retry later"]
        assert not supervisor.runners.all


async def test_retries_end(database_url: str, settings: Settings) -> None:
    async with open_shop(database_url, settings, retry_delay=0.0) as shop, at_work(shop):
        job_id = await shop.enqueue("fail", max_retries=1)
        job = await shop.ended(job_id, Status.FAILED)
        assert job.retry_count == 1
        assert await shop.history(job_id) == ["enqueue", "claim", "retry later", "claim", "fail"]


async def test_a_permanent_failure_has_its_own_event_in_the_log(
    database_url: str, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_shop(database_url, settings) as shop:
        with worker_process(shop):
            job_id = await shop.enqueue("leave", max_retries=0)
            job = await shop.ended(job_id, Status.FAILED)
    assert (job.error_message or "").startswith("crashed and exceeded max retries (0): runner")
    [line] = [x for x in capfd.readouterr().err.splitlines() if "job failed permanently" in x]
    assert str(job_id) in line


@pytest.mark.parametrize("kind", ["count", "shared count"])
async def test_a_completed_job_is_not_reported_as_lost(
    database_url: str, settings: Settings, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    async with open_shop(database_url, settings) as shop:
        with worker_process(shop):
            job_id = await shop.enqueue(kind, steps=1)
            await shop.ended(job_id, Status.COMPLETED)
    # the worker has stopped, and recorded the ends of its runs
    said = capfd.readouterr().err
    assert "run lost" not in said
    assert "given back" not in said


async def test_a_handler_that_gives_up_is_not_asked_again(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job = await shop.ended(await shop.enqueue("give up"), Status.FAILED)
        assert (job.retry_count, job.error_message) == (0, "it will never work")


async def test_a_job_that_must_wait_is_given_back(database_url: str, settings: Settings) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("wait a while")
        job = await shop.when(job_id, lambda job: job.lease == 2)
        assert (job.status, job.retry_count) == (Status.PENDING, 0)
        assert (job.run_after - job.created_at).total_seconds() > 3000
        assert await shop.reasons(job_id, "release") == ["the host asks for an hour"]


@pytest.mark.parametrize("crash", [True, False])
async def test_children_do_not_outlive_their_runner(
    database_url: str, settings: Settings, crash: bool
) -> None:
    async with open_shop(database_url, settings, retry_delay=600.0) as shop, at_work(shop):
        job_id = await shop.enqueue("breed", crash=crash)
        mark = await shop.first_mark(job_id)
        children = [int(pid) for pid in mark.note.split()]
        assert len(children) == 4
        if not crash:
            assert all(lives(pid) for pid in children)
            await shop.queue.cancel(job_id)
        await gone(mark.pid, *children)


async def test_a_module_that_cannot_be_loaded_is_the_reason(
    database_url: str, settings: Settings
) -> None:
    async with (
        open_shop(database_url, settings, retry_delay=600.0) as shop,
        at_work(shop) as supervisor,
    ):
        # as if the module had been broken after the worker started
        changes = {"job_modules": ("misbehaving", "no_such_module")}
        supervisor.runners._settings = shop.settings.model_copy(update=changes)
        job = await shop.retried(await shop.enqueue("count", steps=1))
        assert "no_such_module" in (job.error_message or "")


async def test_a_runner_has_the_key_that_its_worker_was_given(
    database_url: str, settings: Settings
) -> None:
    key = SecretStr(b64encode(os.urandom(32)).decode())
    async with open_shop(database_url, settings, secret_key=key) as shop, at_work(shop):
        sealed = Vault(shop.settings).encrypt("open sesame", "test")
        job_id = await shop.enqueue("open secret", sealed=sealed.hex())
        await shop.ended(job_id)
        assert (await shop.first_mark(job_id)).note == "open sesame"
