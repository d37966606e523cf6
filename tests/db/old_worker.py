"""A worker of an earlier version keeps running while the database is upgraded.

`make test-upgrade` runs it: each earlier version is installed from its commit, which takes a
minute. The results of the last run are in docs/howto/operate.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_upgrade import PAGES, SITE, Site, site, value

from forager.db.schema import SCHEMA_VERSION, current_version
from support.databases import administration, create_database, drop_database, with_database
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
NEW = Path(sys.executable).with_name("forager")
# the last commit of each released schema
EARLIER = {
    "0001": "f185ef17d1303c3674c47765005fc66dffc45a0e",
    "0002": "676066608dee000d7154f3b969bbcfcc18feb244",
    "0003": "2a37bd73aef9193170073e939971d1d5940456be",
}
LIMIT = 600.0

__all__ = ["site"]

pytestmark = pytest.mark.timeout(1800)


def installed(commit: str) -> Path:
    """The `forager` command of a commit, in its own environment."""
    folder = ROOT / "build/upgrade" / commit[:12]
    command = folder / ".venv/bin/forager"
    if not command.exists():
        folder.mkdir(parents=True, exist_ok=True)
        tree = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, capture_output=True, check=False
        )
        if tree.returncode:
            pytest.skip(f"the commit {commit[:12]} is not in this clone")
        subprocess.run(["tar", "-x"], input=tree.stdout, cwd=folder, check=True)
        subprocess.run(["uv", "venv", "--quiet", "--clear", ".venv"], cwd=folder, check=True)
        install = "uv pip install --quiet --python .venv --constraint requirements.lock ."
        subprocess.run(install.split(), cwd=folder, check=True)
    return command


class Machine:
    """Two versions of Forager with the same home and database."""

    def __init__(self, url: str, home: Path) -> None:
        self.url = url
        # an earlier version refuses settings that it does not know
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FORAGER_")}
        self._environment = kept | {"FORAGER_HOME": str(home), "FORAGER_DATABASE_URL": url}

    def run(self, command: Path, *arguments: str) -> str:
        done = subprocess.run(
            [command, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def crawl(self, command: Path, source: str) -> str:
        url = f"http://{SITE[0]}:{SITE[1]}/"
        options = ("--detach", "--allow-private", "--delay=0.5", "--source", source, "--json")
        job: str = json.loads(self.run(command, "crawl", url, *options))["job_id"]
        return job

    @contextmanager
    def worker(self, command: Path) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen([command, "worker"], env=self._environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(LIMIT)

    def status(self, job: str) -> str:
        found: str = value(self.url, f"SELECT status FROM crawl_jobs WHERE id = '{job}'")
        return found

    def committed(self, job: str) -> list[str]:
        query = f"SELECT array_agg(url) FROM crawl_visited WHERE job_id = '{job}'"
        return value(self.url, query) or []


@pytest.fixture
def machine(postgres: str, tmp_path: Path) -> Iterator[Machine]:
    with administration(postgres) as server:
        name = create_database(server)
        yield Machine(with_database(postgres, name), tmp_path)
        drop_database(server, name)


@pytest.mark.parametrize("schema", EARLIER)
async def test_database_is_upgraded_under_a_worker_of_an_earlier_version(
    schema: str, machine: Machine, site: type[Site]
) -> None:
    if schema == SCHEMA_VERSION:
        pytest.skip("the schema has not changed since")
    old = installed(EARLIER[schema])
    begun = machine.crawl(old, "begun")
    assert current_version(machine.url) == schema
    with machine.worker(old) as outdated:
        await eventually(lambda: len(machine.committed(begun)) > PAGES // 4, LIMIT)
        machine.run(NEW, "db", "upgrade")
        assert current_version(machine.url) == SCHEMA_VERSION
        committed = machine.committed(begun)
        assert len(committed) < PAGES, "the crawl ended before the upgrade"
        later = machine.crawl(NEW, "later")
        # it stays, sees the new schema, and claims nothing more
        note = "SELECT note FROM workers WHERE role = 'jobs' AND note IS NOT NULL"
        await eventually(lambda: value(machine.url, note), LIMIT)
        assert f"the database has schema {SCHEMA_VERSION}" in value(machine.url, note)
        assert outdated.poll() is None
        moves = f"SELECT array_agg(move) FROM job_events WHERE job_id = '{later}'"
        assert value(machine.url, moves) == ["enqueue"]
        with machine.worker(NEW):
            await eventually(
                lambda: {machine.status(begun), machine.status(later)} == {"completed"}, LIMIT
            )
    assert outdated.returncode == 0
    for job in (begun, later):
        urls = machine.committed(job)
        assert len(urls) == len(set(urls)) == PAGES
    # pages of the first crawl that were committed before were fetched by it once
    origin = f"http://{SITE[0]}:{SITE[1]}"
    assert all(site.visits[url.removeprefix(origin)] == 2 for url in committed)
    claims = f"SELECT count(*) FROM job_events WHERE move = 'claim' AND job_id = '{begun}'"
    print(f"schema {schema}: the crawl was claimed {value(machine.url, claims)} times")
