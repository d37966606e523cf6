"""The built packages on clean machines: every Python, installer, user and extra.

`make test-packages` runs it after `make dist` and records the results.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from containers.engine import python_image, require_engine, run_once

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
USERS = {"root": "0", "ordinary user": "10001"}
# each leaves the command `forager` on the PATH
INSTALLERS = {
    "uv tool": 'uv tool install --quiet --python "$PYTHON" /dist/*.whl',
    "pip, wheel": '"$PYTHON" -m venv "$HOME/env"; "$HOME/env/bin/pip" install -q /dist/*.whl',
    "pip, sdist": '"$PYTHON" -m venv "$HOME/env"; "$HOME/env/bin/pip" install -q /dist/*.tar.gz',
    "pipx": 'pipx install --quiet --python "$PYTHON" /dist/*.whl',
}
DEMO = """
export HOME=$(mktemp -d) PATH="$PATH"; export PATH="$HOME/env/bin:$HOME/.local/bin:$PATH"
export UV_CACHE_DIR=/cache/uv PIP_CACHE_DIR=/cache/pip PIP_NO_COMPILE=1
{install} >&2
mkdir "$HOME/empty"; cd "$HOME/empty"
forager --version
forager demo --json
forager search "crawl delay" --source demo --json
forager db stop >&2
test -z "$(ls -A)"
"""
EXTRA = """
export HOME=$(mktemp -d) UV_CACHE_DIR=/cache/uv
uv venv --quiet --python "$PYTHON" "$HOME/env"
export VIRTUAL_ENV="$HOME/env"
uv pip install --quiet "$(ls /dist/*.whl)[{extra}]"
uv pip check --quiet
"$HOME/env/bin/python" -c 'import {module}'
"$HOME/env/bin/forager" --version
"""
EXTRAS = {
    "parquet": "pyarrow",
    "semantic": "wordllama, safetensors, tokenizers",
    "celery": "forager.dispatch.celery",
    "browser": "playwright.async_api",
    "analytics": "chdb, pyarrow",
    "clickhouse": "clickhouse_connect",
    "tracing": "opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.http",
}
ALL_EXTRAS = ",".join(EXTRAS)


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    require_engine()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], str]]:
    """Outcome by (check, Python); becomes the report."""
    started = time.monotonic()
    found: dict[tuple[str, str], str] = {}
    yield found
    checks = list(dict.fromkeys(check for check, _ in found))
    report = Report("Packages, installed on clean machines")
    report.text(
        "Made by `make test-packages`: the wheel and the sdist of `make dist` are installed in "
        "containers that hold only Debian, one Python, uv and pipx. `forager demo` and a search "
        "then run in an empty folder, as root and as an ordinary user."
    )
    report.table(("machine", ""), describe_machine(tmp_path_factory.mktemp("machine")))
    report.table(
        ("check", *PYTHONS),
        [
            (check, *(found.get((check, python), "not run") for python in PYTHONS))
            for check in checks
        ],
    )
    report.text(f"{len(found)} checks in {(time.monotonic() - started) / 60:.0f} minutes.")
    report.write("packages.md")


def run_in(python: str, script: str, user: str) -> str:
    found = python_image(python)
    if found is None:
        pytest.skip(f"Python {python} is neither in Debian nor in ~/.pyenv")
    image, interpreter, options = found
    return run_once(
        image,
        script,
        "--user",
        user,
        "--env",
        f"PYTHON={interpreter}",
        "--volume",
        f"{DIST}:/dist:ro",
        "--volume",
        f"forager-test-cache-{user}:/cache:U",
        *options,
    )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("installer", INSTALLERS)
def test_demo_runs_in_an_empty_folder(
    python: str, user: str, installer: str, results: dict[tuple[str, str], str]
) -> None:
    key = (f"{installer}, {user}", python)
    results[key] = "not available or failed"
    output = run_in(python, DEMO.format(install=INSTALLERS[installer]), USERS[user])
    version, rest = output.split("\n", 1)
    crawl, end = json.JSONDecoder().raw_decode(rest.strip())
    assert version.split()[-1] == next(DIST.glob("*.whl")).name.split("-")[1]
    assert (crawl["ledger"]["fetched"], crawl["ledger"]["excluded"]) == (12, 1)
    assert "polite.html#robots" in rest[end:]
    results[key] = "ok"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("extra", [*EXTRAS, ALL_EXTRAS])
def test_extra_can_be_installed_and_imported(
    python: str, extra: str, results: dict[tuple[str, str], str]
) -> None:
    key = (f"extra {extra}" if extra in EXTRAS else "all extras", python)
    results[key] = "not available or failed"
    module = EXTRAS.get(extra) or ", ".join(EXTRAS.values())
    run_in(python, EXTRA.format(extra=extra, module=module), USERS["root"])
    results[key] = "ok"


def test_every_extra_is_covered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])
