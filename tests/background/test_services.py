"""Background services: run again after any error, and visible to every process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import psycopg
import pytest

from forager import background
from forager.background import background_services, worker_services
from forager.checks import Level
from forager.cli.system import worker
from forager.db.database import Database
from forager.db.ids import new_id
from forager.doctor.background import check_services
from forager.errors import DatabaseUnavailable, ForagerError
from forager.logs import configure_logs
from forager.metrics.gauges import Gauges
from forager.processes.identity import process_name
from forager.services import store, supervisor
from forager.services.report import identify, list_service_processes, run_services
from forager.services.service import Service, isolated
from forager.services.status import ServiceState, ServiceStatus
from forager.services.supervisor import running, statuses_of_this_process
from forager.settings import Settings
from support.databases import outage
from support.sql import execute
from support.waiting import eventually

LIMIT = 60
FAILED = "service failed, will be restarted"
RECOVERED = "service recovered"


@pytest.fixture(autouse=True)
def quick_restarts(quiet_logs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    configure_logs("info", "json")
    monkeypatch.setattr(supervisor, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(supervisor, "LONGEST_DELAY", 0.01)


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]


class Steps:
    """A step that raises the given errors in turn, and then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.runs = 0
        self.succeeded = asyncio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        self.succeeded.set()
        return 0

    async def success(self) -> None:
        await asyncio.wait_for(self.succeeded.wait(), LIMIT)


def service(step: Steps, name: str = "test", every: float = 0.001) -> Service:
    return Service(name=name, every=every, step=step)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("a bug"),
        ValueError("cannot convert float NaN to integer"),
        ForagerError("expected"),
        DatabaseUnavailable(),
        psycopg.errors.InvalidTextRepresentation(),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_service_that_fails_is_restarted(error: BaseException) -> None:
    broken, sound = Steps(error, error), Steps()
    async with running([service(broken), service(sound, "sound")]):
        await broken.success()
        await sound.success()
    assert broken.runs >= 3


async def test_failures_are_visible_and_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    step = Steps(*[KeyError("a bug") for _ in range(100_000)])
    async with running([service(step)]) as supervised:
        await eventually(lambda: supervised.statuses[0].is_failing)
        failing, _loop = statuses_of_this_process()
        assert failing.state is ServiceState.BACKING_OFF
        assert failing.is_fault
        assert failing.last_error == "KeyError: 'a bug'"
        assert failing.last_success is None
        assert failing.next_run is not None
        assert failing.last_run is not None
        step.errors.clear()
        await eventually(lambda: supervised.statuses[0].failures == 0)
        assert not supervised.statuses[0].is_failing
        assert supervised.statuses[0].last_success is not None
    assert statuses_of_this_process() == []
    lines = logged(capsys)
    assert [line["event"] for line in lines] == [FAILED, RECOVERED]
    assert lines[0]["level"] == "error"
    assert "KeyError" in str(lines[0]["exception"])


async def test_an_unavailable_dependency_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    step = Steps(*[ForagerError("the broker is unavailable") for _ in range(100_000)])
    async with running([service(step)]) as supervised:
        await eventually(lambda: supervised.statuses[0].is_failing)
        assert not supervised.statuses[0].is_fault
    (line,) = logged(capsys)
    assert (line["level"], line["reason"]) == ("warning", "the broker is unavailable")


async def test_a_step_that_hangs_is_reported_until_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ends = asyncio.Event()
    hangs = Service(name="test", every=0.001, step=ends.wait, stuck_after=0.01)
    async with running([hangs]) as supervised:
        await eventually(lambda: supervised.statuses[0].is_stuck)
        stuck, _loop = statuses_of_this_process()
        assert (stuck.is_failing, stuck.failures, stuck.state) == (True, 0, ServiceState.STUCK)
        ends.set()
        await eventually(lambda: supervised.statuses[0].last_success is not None)
        assert not supervised.statuses[0].is_failing
    assert [line["event"] for line in logged(capsys)] == ["service is stuck", RECOVERED]


def test_a_step_may_take_longer_the_rarer_it_runs() -> None:
    limits = [Service(name="test", every=every, step=Steps()).step_limit for every in (1.0, 3600.0)]
    assert limits == [600.0, 24 * 3600.0]


async def test_resources_are_opened_again_after_a_fault_only() -> None:
    opened: list[str] = []

    @asynccontextmanager
    async def resources() -> AsyncIterator[None]:
        opened.append("open")
        yield
        opened.append("close")

    step = Steps(DatabaseUnavailable(), DatabaseUnavailable())
    async with running([Service(name="t", every=0.001, step=step, resources=resources)]):
        await step.success()
        assert opened == ["open"]
        step.errors, step.succeeded = [KeyError("a bug")], asyncio.Event()
        await step.success()
    assert opened == ["open", "open"]  # an exception ends the generator at its yield


async def test_resources_that_do_not_open_are_tried_again() -> None:
    attempts = 0

    @asynccontextmanager
    async def resources() -> AsyncIterator[None]:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise OSError("no socket")
        yield

    step = Steps()
    async with running([Service(name="t", every=0.001, step=step, resources=resources)]):
        await step.success()
    assert attempts == 3


async def test_a_full_chunk_is_followed_at_once() -> None:
    left = [5, 5, 2]
    done = asyncio.Event()

    async def step() -> int:
        if len(left) == 1:
            done.set()
        return left.pop(0) if len(left) > 1 else 0

    hourly = Service(name="t", every=3600.0, step=step, chunk=5, first_within=0.0)
    async with running([hourly]):
        await asyncio.wait_for(done.wait(), LIMIT)


# --- as other processes see it -------------------------------------------------------------------


async def test_status_is_visible_to_other_processes(database: Database, settings: Settings) -> None:
    quick = settings.model_copy(update={"heartbeat_interval": 0.05})
    step = Steps(*[KeyError("a bug") for _ in range(10_000)])
    async with run_services(database, quick, identify("worker", "p"), [service(step, "broken")]):
        async with asyncio.timeout(LIMIT):
            while True:
                seen = await list_service_processes(database, quick)
                if seen and any(each.is_failing for each in seen[0].services):
                    break
                await asyncio.sleep(0.02)
    assert (seen[0].command, seen[0].is_gone) == ("worker", False)
    broken, report, _loop = seen[0].services
    assert (broken.name, report.name) == ("broken", "service report")
    assert broken.last_error == "KeyError: 'a bug'"
    assert await list_service_processes(database, quick) == [], "its row goes with its end"


async def report(database: Database, *statuses: ServiceStatus) -> None:
    async with database.connection() as connection:
        rows = orjson.loads(orjson.dumps(statuses))
        await store.upsert_process(connection, identify("worker", None), rows)


FAILING = ServiceStatus(
    name="scheduler",
    every=1.0,
    state=ServiceState.BACKING_OFF,
    failures=7,
    is_fault=True,
    last_error="ValueError: a bad row",
)
STUCK = ServiceStatus(name="archive cleanup", every=3600.0, state=ServiceState.STUCK)
SKIPPING = ServiceStatus(name="source refresh", every=15.0, skipped=("source a: no cron",))
SOUND = ServiceStatus(name="audit", every=3600.0)


async def test_the_doctor_names_services_that_fail(database: Database, settings: Settings) -> None:
    assert (await check_services(database, settings)).message == "0 in 0 processes"
    await report(database, SOUND)
    check = await check_services(database, settings)
    assert (check.level, check.message) == (Level.OK, "1 in 1 process")
    killed = identify("worker", f"{process_name()}0")
    async with database.connection() as connection:
        await store.upsert_process(connection, killed, orjson.loads(orjson.dumps([SOUND])))
    assert (await check_services(database, settings)).message == "1 in 1 process", "one is killed"
    await report(database, SKIPPING)
    check = await check_services(database, settings)
    assert check.level is Level.WARN
    assert check.examples == ["source a: no cron"]
    await report(database, FAILING)
    check = await check_services(database, settings)
    assert check.level is Level.WARN
    assert "scheduler failed 7 times in a row: ValueError: a bad row" in check.message
    await report(database, STUCK)
    check = await check_services(database, settings)
    assert check.level is Level.WARN
    assert ("stuck in a step" in check.message, check.examples) == (True, ["archive cleanup"])
    await execute(database, "UPDATE service_processes SET last_seen = now() - interval '1 h'")
    assert (await check_services(database, settings)).message == "0 in 0 processes"


async def test_metrics_count_services(database: Database, settings: Settings) -> None:
    await report(database, FAILING, SKIPPING)
    await report(database, SOUND, STUCK)
    values = await Gauges(database, settings).values()
    assert values["forager_services", ("scheduler", "backing_off"), ""] == 1
    assert values["forager_services", ("audit", "waiting"), ""] == 1
    assert values["forager_services", ("archive cleanup", "stuck"), ""] == 1
    assert values["forager_service_failures", ("scheduler",), ""] == 7
    assert values["forager_service_failures", ("audit",), ""] == 0
    assert values["forager_service_skipped", ("source refresh",), ""] == 1


async def test_skipped_items_are_reported_until_they_succeed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = {"b"}
    handled: list[str] = []

    async def step() -> None:
        for item in "abc":
            with isolated(f"item {item}"):
                if item in bad:
                    raise ValueError("a bad row")
                handled.append(item)

    async with running([Service(name="test", every=0.001, step=step)]) as supervised:
        await eventually(lambda: supervised.statuses[0].skipped != ())
        assert supervised.statuses[0].skipped == ("item b: ValueError: a bad row",)
        assert not supervised.statuses[0].failures
        await eventually(lambda: len(handled) > 10)
        bad.clear()
        await eventually(lambda: not supervised.statuses[0].skipped)
    assert set(handled) == set("abc")
    assert [line["event"] for line in logged(capsys)] == ["item skipped"]


async def test_an_outage_is_not_blamed_on_an_item() -> None:
    with pytest.raises(DatabaseUnavailable), isolated("item"):
        raise DatabaseUnavailable


async def test_names_are_unique(database: Database, settings: Settings) -> None:
    names = [each.name for each in worker_services(database, settings, new_id())]
    assert len(names) == len(set(names))
    assert "analytics sync" not in names
    hourly = settings.model_copy(update={"analytics_sync_every": 3600.0})
    named = {each.name: each for each in worker_services(database, hourly, new_id())}
    assert await named["analytics sync"].step() == 0


# --- an outage of the database -------------------------------------------------------------------


async def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    postgres: str, database_url: str, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = database.with_answer_limit(1.0)

    async def ask() -> None:
        async with limited.connection() as connection:
            await connection.execute("SELECT 1")

    async with running([Service(name="test", every=0.01, step=ask)]) as supervised:
        await eventually(lambda: supervised.statuses[0].last_success is not None)
        with outage(postgres, database_url):
            await eventually(lambda: supervised.statuses[0].failures >= 3)
        await eventually(lambda: supervised.statuses[0].failures == 0)
    lines = logged(capsys)
    assert [line["event"] for line in lines] == [FAILED, RECOVERED]
    assert lines[0]["level"] == "warning"
    assert "the database cannot be used" in str(lines[0]["reason"])


async def test_every_service_of_a_worker_logs_an_outage_once(
    postgres: str,
    database_url: str,
    database: Database,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hasty = settings.model_copy(update={"scheduler_interval": 0.02, "watchdog_interval": 0.02})
    with outage(postgres, database_url):
        async with background_services(database.with_answer_limit(0.5), hasty):
            await eventually(
                lambda: any(
                    status.name == "scheduler" and status.failures >= 5
                    for status in statuses_of_this_process()
                )
            )
    lines = logged(capsys)
    failed = [line["service"] for line in lines if line["event"] == FAILED]
    assert "scheduler" in failed
    assert len(failed) == len(set(failed))


async def test_a_worker_does_not_run_without_its_services(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[Service]:
        raise ForagerError("the services cannot be made")

    monkeypatch.setattr(background, "worker_services", fail)
    monkeypatch.setattr(worker, "JOBS_FIRST", 0.0)
    async with asyncio.timeout(LIMIT) as limit:
        with pytest.raises(ForagerError, match="cannot be made"):
            await worker.run_worker(settings, name="worker", tasks=False)
    assert not limit.expired()
