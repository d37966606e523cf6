"""The built packages on clean machines: every Python, installer, user and extra.

`make test-packages` runs it after `make dist` and records the results.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.machine import describe_machine
from benchmarks.report import DATA, Report
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
export FORAGER_BROKER_URL=amqp://127.0.0.1// # read when the module of Celery is imported
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
Results = dict[tuple[str, str], str]
ALL_EXTRAS = ",".join(EXTRAS)


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    require_engine()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """Outcome by (check, Python); the report also keeps earlier outcomes of other checks."""
    found = dict(_recorded())
    yield found
    report = Report("Packages, installed on clean machines")
    report.text(
        "Made by `make test-packages`: the wheel and the sdist of `make dist` are installed in "
        "containers that hold only Debian, one Python, uv and pipx. `forager demo` and a search "
        "then run in an empty folder, as root and as an ordinary user."
    )
    report.table(("machine", ""), describe_machine(tmp_path_factory.mktemp("machine")))
    checks = dict.fromkeys(check for check, _ in found)
    rows = [(check, *(found.get((check, each), "not run") for each in PYTHONS)) for check in checks]
    report.table(("check", *PYTHONS), rows)
    report.write("packages.md")


def _recorded() -> Iterator[tuple[tuple[str, str], str]]:
    file = DATA / "packages.json"
    for table in json.loads(file.read_text())["tables"] if file.exists() else ():
        for check, *outcomes in table["rows"]:
            for python, outcome in zip(table["head"][1:], outcomes, strict=True):
                if outcome != "not run":
                    yield (check, python), outcome


@contextmanager
def recorded(results: Results, check: str, python: str) -> Iterator[None]:
    try:
        yield
    except Exception:
        results[check, python] = "failed"
        raise
    results[check, python] = "ok"


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
    python: str, user: str, installer: str, results: Results
) -> None:
    with recorded(results, f"{installer}, {user}", python):
        _check_demo(run_in(python, DEMO.format(install=INSTALLERS[installer]), USERS[user]))


def _check_demo(output: str) -> None:
    version, rest = output.split("\n", 1)
    crawl, end = json.JSONDecoder().raw_decode(rest.strip())
    assert version.split()[-1] == next(DIST.glob("*.whl")).name.split("-")[1]
    assert (crawl["ledger"]["fetched"], crawl["ledger"]["excluded"]) == (12, 1)
    assert "polite.html#robots" in rest[end:]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("extra", [*EXTRAS, ALL_EXTRAS])
def test_extra_can_be_installed_and_imported(python: str, extra: str, results: Results) -> None:
    check = f"extra {extra}" if extra in EXTRAS else "all extras"
    module = EXTRAS.get(extra) or ", ".join(EXTRAS.values())
    with recorded(results, check, python):
        run_in(python, EXTRA.format(extra=extra, module=module), USERS["root"])


def test_every_extra_is_covered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])
