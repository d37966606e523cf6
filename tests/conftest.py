"""The real PostgreSQL for every test: one server per run, one database per test."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import hypothesis
import pytest
from pydantic import SecretStr

from built_site import Crawls
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import ServerUse, join_server
from forager.jobs.kinds import load_kinds
from forager.jobs.queue import Queue
from forager.logs import configure_logs
from forager.parsers import registry
from forager.settings import Settings
from forager.settings.crawling import MarkdownMode
from servers.certificates import Authority
from servers.shop import Shop
from support.databases import Databases, administration, with_database
from support.kept_sandboxes import KeptSandboxes
from support.memory import memory_folder, remove_memory_folder

# Without compiled modules, each process that a test starts would compile all of Forager, and each
# run would rewrite all assertions, which takes longer than most tests together.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# the same inputs in every run: a change fails the tests, and chance does not.
# HYPOTHESIS_PROFILE=default looks elsewhere each time, and `make fuzz` further than that
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
if "HYPOTHESIS_PROFILE" not in os.environ:
    hypothesis.settings.load_profile("repeatable")

# Tests that were started in the background may ignore Ctrl-C, and whatever they start would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TEMPLATE = "forager_template"

load_kinds()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin each worker's share with modules of long tests, so that none is left for the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    modules = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    long = [tests for tests in modules if any(map(_is_long, tests))]
    short = [item for tests in modules if tests not in long for item in tests]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        share = (len(items) - len(ordered)) // (workers - worker)
        begin = [item for tests in long[worker::workers] for item in tests]
        rest = max(share - len(begin), 0)
        ordered += [*begin, *short[:rest]]
        del short[:rest]
    items[:] = ordered + short


def pytest_unconfigure() -> None:
    """The first process of a run ends last."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        remove_memory_folder(os.getpid())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: the garbage collector need not look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _is_long(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("timeout")
    has_time = marker is not None and marker.args[0] > float(item.config.getini("timeout"))
    return has_time or item.get_closest_marker("long") is not None


@pytest.fixture(autouse=True)
def quiet_logs() -> None:
    configure_logs("critical")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one certificate, of an authority that signs nothing."""
    return Authority(tmp_path_factory.mktemp("certificates")).trusted_file()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, certificates: Path) -> None:
    """No test sees the settings, the home or the folder of the user who runs it."""
    for name in list(os.environ):
        if name.startswith("FORAGER_") and not name.startswith("FORAGER_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("FORAGER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FORAGER_DATABASE_LINGER_SECONDS", "0")
    # tests of rendering name their browser; no other test starts one
    monkeypatch.setenv("FORAGER_BROWSER", "none")
    # a model is loaded only where a test is about it
    monkeypatch.setenv("FORAGER_EMBEDDINGS", "off")
    # each process reads the certificates that it trusts as it starts: of the system, these are 140
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    # a second one only takes time to start: the pages of tests are small
    monkeypatch.setenv("FORAGER_EXTRACTION_PROCESSES", "1")
    # a worker that a test runs in this process loads parsers
    monkeypatch.setattr(registry, "_modules", registry._modules)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of one test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def server_folder(run_folder: Path) -> Path:
    """The files of the server: in memory if there is room."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    return memory_folder(os.getppid() if is_worker else os.getpid()) or run_folder / "server"


@pytest.fixture(scope="session")
def postgres(server_folder: Path) -> Iterator[str]:
    """A PostgreSQL: FORAGER_TEST_DATABASE_URL, or an embedded one of this test run."""
    external = os.environ.get("FORAGER_TEST_DATABASE_URL")
    if external:
        yield external
        return
    with join_server(server_folder) as use:
        with administration(use.url) as connection:
            # processes are killed here, the machine is not: what the kernel has is safe enough
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("ALTER SYSTEM SET full_page_writes = off")
            connection.execute("ALTER SYSTEM SET max_wal_size = '512MB'")
            connection.execute("SELECT pg_reload_conf()")
        yield use.url


@pytest.fixture(scope="session")
def template(postgres: str, run_folder: Path) -> str:
    """A database at the current schema, to be copied; made by whichever process comes first."""
    name = f"{TEMPLATE}_{run_folder.name.replace('-', '_')}"
    with _file_lock(run_folder / "template.lock"), administration(postgres) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if known.fetchone() is None:
            connection.execute(f'CREATE DATABASE "{name}"')
            schema.ensure_current(with_database(postgres, name))
    return name


@pytest.fixture(scope="session")
def databases(postgres: str, template: str) -> Iterator[Databases]:
    made = Databases(postgres, template)
    yield made
    made.close()


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    with databases.database() as url:
        yield url


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings with short intervals of the queue."""
    return Settings(
        home=tmp_path / "home",
        database_url=SecretStr(database_url),
        extraction_processes=1,
        poll_interval=0.1,
        heartbeat_interval=0.2,
        retry_delay=0.05,
        dead_letter_visits=1,
        dead_letter_after=0,
        gone_visits=1,
        gone_after=0,
        # tests count requests; those of markdown turn it on
        markdown=MarkdownMode.NEVER,
        log_level="critical",
    )


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    """Commands of this test use its database, and run in an empty folder."""
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_LOG_LEVEL", "critical")
    monkeypatch.setenv("FORAGER_MARKDOWN", "never")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url, name="forager test", max_size=8) as database:
        yield database


@pytest.fixture
def crawls(database: Database, queue: Queue, settings: Settings) -> Crawls:
    """A source that is crawled without fetching: its pages are given."""
    return Crawls(database, queue, settings)


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A shop on loopback."""
    with Shop().open() as shop:
        yield shop


@pytest.fixture(scope="session")
def shared_sandboxes() -> Iterator[KeptSandboxes]:
    kept = KeptSandboxes()
    yield kept
    kept.close()


@pytest.fixture
def kept_sandboxes(
    request: pytest.FixtureRequest, shared_sandboxes: KeptSandboxes
) -> Iterator[None]:
    """Tests share the processes that read pages, unless they are about those."""
    if "own_sandboxes" in request.fixturenames:
        yield
        return
    with shared_sandboxes.used():
        yield


@pytest.fixture
def own_sandboxes(shared_sandboxes: KeptSandboxes) -> None:
    """This test starts and ends its own processes, and there are no others."""
    shared_sandboxes.close()


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUse]:
    """A separate PostgreSQL that the tests of a module may kill."""
    with join_server(tmp_path_factory.mktemp("own")) as use:
        schema.ensure_current(use.url)
        yield use


@pytest.fixture
def queue(database: Database, settings: Settings) -> Queue:
    return Queue(database, settings)


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
