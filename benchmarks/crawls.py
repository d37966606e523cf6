"""One crawl and its resource usage, by the Forager command or by another crawler."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.usage import Usage, run_measured
from forager.db.embedded import join_server

FOLDER = Path(__file__).parent
PEERS = FOLDER.parent / ".venv-bench"
LOCK = FOLDER / "requirements.lock"

# stands for the URL of a PostgreSQL of the same kind as Forager's
DATABASE = "{database}"
# how crawlers that are not in Python are built, in a folder of the same name
BUILDS = {
    "colly_files": ("go", "build", "-o", "{target}/colly_files", "."),
    "spider_files": ("cargo", "install", "-q", "--locked", "--path", ".", "--root", "{target}/.."),
}

ARCHIVE_ONLY = ("--no-documents",)
# processes of a crawl by a word of their command lines
PARTS = {"forager.jobs": "runner", "forager.crawl.extraction.process": "extraction"}
# the parts of a crawl; the rest is the command itself, independent of the size of the site
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
    """Run a crawl with Forager; the database is included."""
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
    peer: str, words: Sequence[str], url: str, folder: Path, parts: Mapping[str, str] | None = None
) -> Crawl:
    """`peer` is a Python script, or a program that was built; for `DATABASE` it gets a server."""
    with TemporaryDirectory(dir=folder) as storage, ExitStack() as stack:
        python = [str(PEERS / "bin/python"), str(FOLDER / "contenders" / peer)]
        program = python if peer.endswith(".py") else [str(PEERS / "bin" / peer)]
        server = stack.enter_context(join_server(Path(storage))) if DATABASE in words else None
        given = [server.url if server and word is DATABASE else word for word in words]
        usage = run_measured(
            [*program, url, storage, *given],
            also=server.pid if server else None,
            env={**os.environ, "CRAWLEE_STORAGE_DIR": storage},
            parts=parts,
        )
    answer = json.loads(usage.output.splitlines()[-1])
    return Crawl(answer["pages"], answer["seconds"], usage)


def install_peers() -> None:
    """Install the other crawlers into a separate environment: Forager does not depend on them."""
    ready = PEERS / ".ready"
    if ready.exists() and ready.stat().st_mtime >= LOCK.stat().st_mtime:
        return
    subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    pip = [str(PEERS / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--requirement", str(LOCK)], check=True)
    ready.touch()


def build_peers() -> dict[str, str]:
    """Build the crawlers that are not in Python; return the reasons of failed builds."""
    missing = {}
    for peer, (tool, *_) in BUILDS.items():
        if shutil.which(tool) is None:
            missing[peer] = f"{tool} is not installed"
        elif _build(peer).returncode:
            missing[peer] = f"{tool} could not build it"
    return missing


def _build(peer: str) -> subprocess.CompletedProcess[bytes]:
    """Returns quickly if nothing has changed."""
    command = [word.format(target=PEERS / "bin") for word in BUILDS[peer]]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(PEERS / "cargo")}
    folder = FOLDER / "contenders" / peer
    return subprocess.run(command, cwd=folder, env=environment, check=False)
