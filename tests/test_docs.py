"""The reference matches the code, commands in the documentation run, links have targets."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forager as public
from reference import FOLDER, PAGES, whole_page
from scripts import site
from support.cli import forager, forager_process

DOCS = FOLDER.parent
ROOT = DOCS.parent
RESULTS = ROOT / "benchmarks" / "results"
WRITTEN = [path for folder in (DOCS, RESULTS) for path in sorted(folder.rglob("*.md"))]
WRITTEN += sorted(ROOT.glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# commands of one page run as processes, as users start them; the others in this process
AS_PROCESSES = FOLDER / "cli.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_every_command_and_setting_is_documented(name: str) -> None:
    page = (FOLDER / name).read_text(encoding="utf-8")
    assert page == whole_page(name), "run `make reference`"


def pages_with_commands() -> list[Path]:
    """Without tutorials: tests/test_tutorials.py runs them."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "tutorials"]
    return [page for page in pages if commands_of(page)]


def commands_of(page: Path) -> list[str]:
    """The `$ forager …` lines of ```console blocks; what takes long or needs more is in ```sh."""
    blocks = CONSOLE.findall(page.read_text(encoding="utf-8"))
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ forager")]


@pytest.mark.parametrize("page", pages_with_commands(), ids=lambda p: str(p.relative_to(DOCS)))
@pytest.mark.usefixtures("command_line")
# by signal: a command that hangs fails its test, and does not end the worker of pytest
@pytest.mark.timeout(120, method="signal")
def test_commands_in_the_documentation_run(page: Path) -> None:
    run = forager_process if page == AS_PROCESSES else forager
    for command in commands_of(page):
        done = run(*shlex.split(command)[1:])
        assert done.code == 0, f"{command}\n{done.out}{done.err}"


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def anchors_of(page: Path) -> list[str]:
    """As GitHub makes them: lower case, without marks, dashes for spaces."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_site_lists_every_page() -> None:
    """`make docs` builds the site and checks its links, too."""
    listed = set(paths_of(tomllib.loads(site.configuration())["project"]["nav"]))
    assert listed == {str(page.relative_to(ROOT)) for page in WRITTEN}


def paths_of(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from paths_of(entry)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_import_only_public_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"^(?:from|import) forager\.\S+", text, re.MULTILINE)
    for names in re.findall(r"^from forager import (\([^)]*\)|.*)", text, re.MULTILINE):
        assert set(re.findall(r"\w+", names)) <= set(vars(public)["__all__"])
