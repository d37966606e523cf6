"""One crawl with its cost: by Forager through the command a user calls, or by one of its peers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.usage import Usage, run_measured
from forager.db.embedded import join_server

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-bench"
LOCK = HERE / "requirements.lock"

ARCHIVE_ONLY = ("--no-documents",)
# processes of a crawl by a word of their command lines
PARTS = {"forager.jobs": "runner", "forager.crawl.extraction.process": "extraction"}
# what a crawl is measured by: the rest is the command itself, however large the site
OF_A_CRAWL = ("runner", "extraction", "PostgreSQL")


@dataclass(frozen=True, slots=True)
class Crawl:
    """One crawl. `seconds` is the crawl itself, `usage` the command with its start and end."""

    pages: int
    seconds: float
    usage: Usage

    @property
    def rate(self) -> float:
        return self.pages / self.seconds

    def ms_per_page(self, part: str) -> float:
        return 1000 * self.usage.parts[part] / self.pages


def crawl_with_forager(
    url: str, home: Path, options: Sequence[str] = (), parts: Mapping[str, str] = PARTS
) -> Crawl:
    """The database's work is counted in."""
    with join_server(home) as server:
        command = [
            str(Path(sys.executable).parent / "forager"), "--home", str(home), "crawl", url,
            "--concurrency", "64", "--delay", "0", "--allow-private", "--json", *options,
        ]  # fmt: skip
        environment = {**os.environ, "NO_COLOR": "1"}
        usage = run_measured(command, also=server.pid, env=environment, parts=parts)
    answer = json.loads(usage.output)
    return Crawl(answer["pages"], answer["seconds"], usage)


def crawl_with_peer(
    script: str,
    words: Sequence[str],
    url: str,
    folder: Path,
    parts: Mapping[str, str] | None = None,
) -> Crawl:
    with TemporaryDirectory(dir=folder) as storage:
        program = [str(PEERS / "bin/python"), str(HERE / "contenders" / script)]
        command = [*program, url, storage, *words]
        usage = run_measured(
            command, env={**os.environ, "CRAWLEE_STORAGE_DIR": storage}, parts=parts
        )
    answer = json.loads(usage.output.splitlines()[-1])
    return Crawl(answer["pages"], answer["seconds"], usage)


def install_peers() -> None:
    """The peers live in an environment of their own: they are no dependency of Forager."""
    ready = PEERS / ".ready"
    if ready.exists() and ready.stat().st_mtime >= LOCK.stat().st_mtime:
        return
    subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    pip = [str(PEERS / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--requirement", str(LOCK)], check=True)
    ready.touch()
