"""The site that comes with Forager, crawled the way a first-time user does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from forager.demo.server import demo_site

FORAGER = Path(sys.executable).with_name("forager")


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FORAGER, "--home", home, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=100,
    )


def test_the_first_crawl_finds_everything_and_the_second_that_nothing_changed(
    tmp_path: Path,
) -> None:
    # a port of this test's own: others may be serving the site at its usual one
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    first = json.loads(run(tmp_path, "demo", "--port", port, "--json").stdout)["ledger"]
    assert (first["fetched"], first["duplicate"], first["failed"], first["excluded"]) == (
        12,
        2,
        1,
        1,
    )
    assert first["failed_by_reason"] == {"http_404": 1}
    assert first["excluded_by_reason"] == {"robots": 1}
    assert first["duplicate_by_reason"] == {"redirect": 1, "canonical": 1}
    again = json.loads(run(tmp_path, "demo", "--port", port, "--json").stdout)["ledger"]
    assert (again["fetched"], again["unchanged"]) == (0, 12)
    found = run(tmp_path, "search", "crawl", "delay", "--source", "demo").stdout
    assert "guide/polite.html#robots" in found


def test_a_taken_port_is_no_obstacle() -> None:
    with demo_site(0) as first, demo_site(int(first.split(":")[2].split("/")[0])) as second:
        assert first != second
