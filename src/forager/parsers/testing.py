"""A pytest plug-in that runs the fixtures of parsers: `pytest -p forager.parsers.testing`.

Each `NAME.json` with a saved page beside it is a test. Parsers come from installed packages, the
setting `parser_modules`, and `--parser-module`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("forager").addoption(
        "--parser-module",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module or file whose parsers the fixtures may need (repeatable)",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".json":
        return None
    from forager.parsers.fixtures import page_of

    if page_of(file_path) is None:
        return None
    return FixtureFile.from_parent(parent, path=file_path)


class FixtureFile(pytest.File):
    """A fixture of a parser, which pytest collects."""

    def collect(self) -> Iterator[pytest.Item]:
        _load_parsers(self.config)
        yield FixtureItem.from_parent(self, name=self.path.stem)


class FixtureItem(pytest.Item):
    """The test that a parser reads its fixture as expected."""

    def runtest(self) -> None:
        from forager.parsers.fixtures import check_fixture, load_fixture

        differences = check_fixture(load_fixture(self.path))
        if differences:
            raise FixtureDiffers("\n".join(map(str, differences)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from forager.errors import ForagerError

        if isinstance(excinfo.value, FixtureDiffers | ForagerError):
            return f"{self.path}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"parser fixture {self.path.parent.name}/{self.name}"


class FixtureDiffers(AssertionError):
    """The page was read differently than its fixture expects."""


def _load_parsers(config: pytest.Config) -> None:
    from forager.parsers.registry import load_parsers
    from forager.settings import load_settings

    named = (*load_settings().parser_modules, *config.getoption("--parser-module"))
    broken = [plugin for plugin in load_parsers(named).broken if plugin.origin in named]
    if broken:
        raise pytest.UsageError(f"{broken[0].origin} is no parser: {broken[0].reason}")
