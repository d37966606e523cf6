"""The cluster: PostgreSQL, a proxy in front of it, and Forager's processes, which are restarted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from chaos import control, run_processes
from chaos.bootstrap import write_sitecustomize
from chaos.connection_proxy import ConnectionProxy
from chaos.short_limits import SETTINGS
from chaos.store import audit
from forager.db import schema
from forager.db.database import Database, SessionLimits
from forager.db.embedded import ServerUse, join_server
from forager.settings import ENV_PREFIX, env_name

COMMAND = [sys.executable, "-m", "forager"]
CHECK_INTERVAL = 0.2
STOP_LIMIT = 20.0
POSTMASTER_LIMIT = 60.0


@dataclass(slots=True)
class Member:
    """A role in the cluster, and the process that currently has it."""

    slot: str
    arguments: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process and self.process.poll() is None else None


class Cluster:
    """All running processes. `database` connects to PostgreSQL directly, without the proxy."""

    def __init__(
        self,
        folder: Path,
        server: ServerUse,
        line: ConnectionProxy,
        *,
        workers: int,
        capacity: int,
        switch: str,
    ) -> None:
        self.folder = folder
        self.server = server
        self.line = line
        self.api_port = _free_port()
        self.database = Database(
            server.url, name="forager chaos", max_size=6, limits=SessionLimits()
        )
        self.members = [
            *(Member(f"worker-{n}", ("worker",)) for n in range(workers)),
            Member("api", ("api", "--port", str(self.api_port))),
            Member("scheduler", ("scheduler",)),
        ]
        self._settings = {**SETTINGS, "worker_capacity": capacity}
        self._switch = switch

    # --- processes ---------------------------------------------------------------------------

    def start(self, member: Member) -> None:
        with (self.folder / f"{member.slot}.log").open("ab") as log:
            member.process = subprocess.Popen(
                [*COMMAND, *member.arguments],
                env=self._environment(member.slot),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        member.starts += 1

    async def keep_up(self) -> None:
        """Restart processes that have ended, until cancelled."""
        while True:
            for member in self.members:
                if member.pid is None:
                    self.start(member)
            await asyncio.sleep(CHECK_INTERVAL)

    def descendants(self, member: Member) -> list[psutil.Process]:
        """Runners and task workers with their extraction processes, oldest first."""
        with contextlib.suppress(psutil.Error):
            if member.pid is not None:
                return psutil.Process(member.pid).children(recursive=True)
        return []

    def _environment(self, slot: str) -> dict[str, str]:
        plain = {
            name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)
        }
        settings = {env_name(name): str(value) for name, value in self._settings.items()}
        return {
            **plain,
            **settings,
            "FORAGER_HOME": str(self.folder / "home"),
            "FORAGER_DATABASE_URL": self.line.url,
            "PYTHONPATH": f"{self.folder / 'boot'}{os.pathsep}{control.ROOT}",
            "PYTHONWARNINGS": "default",
            control.FOLDER: str(self.folder),
            control.SLOT: slot,
            control.BREAK: self._switch,
            run_processes.PARENT: str(os.getpid()),
        }

    # --- PostgreSQL ----------------------------------------------------------------------------

    async def restart_server(self) -> None:
        """Stop PostgreSQL immediately, without a checkpoint, and start it again."""
        await asyncio.to_thread(self._end_server)
        await asyncio.to_thread(self.server.ensure_running)

    def _end_server(self) -> None:
        pid = self.server.pid
        with contextlib.suppress(psutil.Error):
            if pid is not None:
                postmaster = psutil.Process(pid)
                postmaster.send_signal(signal.SIGQUIT)
                postmaster.wait(POSTMASTER_LIMIT)

    # --- the end -------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask all processes to stop, wait, and kill the remaining ones."""
        running = [member.process for member in self.members if member.pid is not None]
        for process in running:
            if process is not None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if process is not None:
                    process.wait(STOP_LIMIT)
        run_processes.kill_processes_of(self.folder)
        for process in running:
            if process is not None:
                process.wait(STOP_LIMIT)


@asynccontextmanager
async def running_cluster(
    folder: Path, *, workers: int, capacity: int = 1, switch: str = ""
) -> AsyncIterator[Cluster]:
    """Run a cluster on a separate PostgreSQL with audit triggers; remove it at the end."""
    write_sitecustomize(folder / "boot")
    use = await asyncio.to_thread(join_server, folder / "server")
    try:
        schema.ensure_current(use.url)
        async with ConnectionProxy(use.url) as line:
            cluster = Cluster(folder, use, line, workers=workers, capacity=capacity, switch=switch)
            async with cluster.database:
                async with cluster.database.transaction() as connection:
                    await audit.install(connection)
                keeping = asyncio.ensure_future(cluster.keep_up())
                try:
                    yield cluster
                finally:
                    keeping.cancel()
                    await asyncio.gather(keeping, return_exceptions=True)
                    await asyncio.to_thread(cluster.stop)
    finally:
        await asyncio.to_thread(use.leave)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
