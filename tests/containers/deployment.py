"""A copy of compose.yaml in its own folder and project, run with podman-compose."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from containers.engine import CONFIGURATION, ContainerError, podman, run

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "build/podman-compose/bin/podman-compose"
SITE = Path(__file__).parent / "site"
# generous: the machine may be busy, and the slowest server needs a minute
WAIT_LIMIT = 600.0
HEALTH_EVERY = 3.0


class Deployment:
    """The compose file as written, except for limits that a virtual machine cannot raise.

    Without systemd, podman runs no health checks by itself: a thread does.
    """

    def __init__(self, folder: Path, project: str, port: int, profiles: str = "") -> None:
        self.folder, self.project, self.port = folder, project, port
        self._profiles = profiles
        self.key = ""
        self._ended = threading.Event()
        compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
        for service in compose["services"].values():
            service.pop("ulimits", None)
            service.pop("build", None)  # images are built before
        compose["services"]["api"]["ports"] = [f"127.0.0.1:{port}:8700"]
        compose["services"]["grafana"].pop("ports")
        # the site that is crawled, and a shop
        compose["services"]["site"] = {
            "image": "docker.io/library/python:3.14-slim-trixie",
            "command": ["python", "-u", "/site/server.py"],
            "volumes": [f"{SITE}:/site:ro"],
            "networks": ["outside"],
        }
        (folder / "compose.yaml").write_text(yaml.safe_dump(compose, sort_keys=False))
        shutil.copytree(ROOT / "deploy", folder / "deploy", dirs_exist_ok=True)
        self.secrets = {
            line.removesuffix("="): secrets.token_hex(32)
            for line in (ROOT / ".env.example").read_text().splitlines()
            if line.endswith("=") and not line.startswith("#")
        }
        lines = [f"{name}={value}\n" for name, value in self.secrets.items()]
        (folder / ".env").write_text("".join(lines))

    def compose(self, *arguments: str) -> str:
        command = [str(COMPOSE), "--project-name", self.project]
        for profile in filter(None, self._profiles.split(",")):
            command += ["--profile", profile]
        done = subprocess.run(
            [*command, *arguments],
            cwd=self.folder,
            env={**os.environ, **CONFIGURATION},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_LIMIT,
            check=False,
        )
        if done.returncode != 0:
            raise ContainerError(f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def start(self, settings: str = "") -> str:
        """Create the first key, add `settings`, start everything, as the how-to; return the key."""
        self.compose("down", "--volumes", "--timeout", "5")  # of a run that was killed
        self.watch_health()
        self.compose("up", "--detach", "--no-build", "postgres")
        self.wait_until(lambda: self.healthy("postgres"))
        key: str = json.loads(self.forager("keys", "create", "me", "--scope", "admin", "--json"))[
            "key"
        ]
        (self.folder / "forager.env").write_text(settings)
        self.compose("up", "--detach", "--no-build")
        self.wait_until(lambda: self.healthy("api"))
        return key

    def watch_health(self) -> None:
        threading.Thread(target=self._check_health, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()
        self.compose("down", "--volumes", "--timeout", "5")

    def forager(self, *arguments: str, options: tuple[str, ...] = ()) -> str:
        """A command in a fresh container, as an operator runs it."""
        return self.compose("run", "--rm", "--no-deps", "-T", *options, "worker", *arguments)

    def json(self, *arguments: str) -> Any:
        return json.loads(self.forager(*arguments, "--json"))

    def containers(self, service: str) -> list[str]:
        labels = (
            f"io.podman.compose.project={self.project}",
            f"com.docker.compose.service={service}",
        )
        filters = [f"--filter=label={label}" for label in labels]
        return podman("ps", *filters, "--format", "{{.Names}}").split()

    def inspect(self, service: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(podman("inspect", self.containers(service)[0]))[0]
        return found

    def healthy(self, service: str) -> bool:
        names = self.containers(service)
        return bool(names) and all(
            json.loads(podman("inspect", name))[0]["State"]["Health"]["Status"] == "healthy"
            for name in names
        )

    def execute(self, service: str, *command: str) -> str:
        return podman("exec", self.containers(service)[0], *command)

    def kill(self, service: str) -> None:
        """SIGKILL to its first process, as the kernel does when memory is short."""
        run(["kill", "-KILL", str(self.inspect(service)["State"]["Pid"])])

    def wait_until(self, condition: Callable[[], object]) -> None:
        limit = time.monotonic() + WAIT_LIMIT
        while not condition():
            if time.monotonic() > limit:
                raise ContainerError(f"not reached in {WAIT_LIMIT:.0f} s: {self._logs()}")
            time.sleep(1)

    def _logs(self) -> str:
        names = podman("ps", "--all", f"--filter=label=io.podman.compose.project={self.project}",
                       "--format", "{{.Names}} {{.Status}}")  # fmt: skip
        return names + "".join(
            f"\n--- {name}\n{self._log(name)}"
            for name in names.split()
            if name.startswith(self.project)
        )

    def _log(self, name: str) -> str:
        done = subprocess.run(
            ["podman", "logs", "--tail", "8", name], capture_output=True, text=True, check=False
        )
        return (done.stdout + done.stderr)[-1500:]

    def _check_health(self) -> None:
        while not self._ended.wait(HEALTH_EVERY):
            names = podman("ps", f"--filter=label=io.podman.compose.project={self.project}",
                           "--filter=health=starting", "--filter=health=unhealthy",
                           "--filter=health=healthy", "--format", "{{.Names}}").split()  # fmt: skip
            for name in names:
                subprocess.run(
                    ["podman", "healthcheck", "run", name],
                    env={**os.environ, **CONFIGURATION}, capture_output=True, check=False,
                )  # fmt: skip
