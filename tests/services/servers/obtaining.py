"""Where the programs come from: Debian packages, or a build in a folder of this user's caches.

One build serves every clone of the project: a cold build of all takes a quarter of an hour.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from services.servers.server import NotStartedError, locked

BUILT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forager-services"
# a cold build of the largest takes a quarter of an hour on two busy cores
BUILD_LIMIT = 3600.0


def need_packages(programs: Mapping[str, str]) -> None:
    """Install Debian packages whose programs (path -> package) are missing; only root can."""
    missing = sorted({package for path, package in programs.items() if not Path(path).exists()})
    if not missing:
        return
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        raise NotStartedError(f"Debian packages are missing. Run: sudo {' '.join(install)}")
    with locked(BUILT / "packages.lock"):
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        try:
            run(install, environment)
        except NotStartedError:  # the lists may be old, or not there at all
            run(["apt-get", "update"], environment)
            run(install, environment)


def build_once(result: Path, build: Callable[[Path], None]) -> Path:
    """Build `result`, one process at a time, all or nothing."""
    with locked(BUILT / f"{result.name}.lock"):
        if not result.exists():
            unfinished = result.with_name(f"{result.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            build(unfinished)
            unfinished.rename(result)
    return result


def need_program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotStartedError(f"`{name}` is not here; it comes with {package}")
    return found


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, cwd: Path | None = None
) -> str:
    """Run to the end and return what it printed; its words when it fails."""
    try:
        done = subprocess.run(
            command,
            env=os.environ | dict(environment or {}),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=BUILD_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotStartedError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise NotStartedError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")
    return done.stdout
