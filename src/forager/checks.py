"""Checks and their report: one shape for the doctor, audits and the checks of archive and sources.

A feature declares its checks in a module `checks.py` beside its data:

    @check("stale_jobs", Topic.WORK, "They wait until another worker takes them over.")
    async def check_stale_jobs(database: Database, settings: Settings) -> Result:
        if stale := await list_stale(database, settings):
            return warn("jobs of workers that died", "Run forager watchdog --once.", found=stale)
        return "none"

The topic decides what a check is given, and which command runs it: see `Topic`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import ModuleType
from typing import Any, Generic, ParamSpec

from forager.errors import DatabaseUnavailable, ForagerError

Given = ParamSpec("Given")
# examples that a text shows, and those that a report holds
EXAMPLES = 10
MAX_EXAMPLES = 1000


class Level(StrEnum):
    """How serious a finding is; `fail` also fails the command."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Topic(StrEnum):
    """What checks examine. A check is called with the arguments in parentheses."""

    MACHINE = "machine"  # (settings), by `doctor`
    SERVER = "server"  # (database, settings), by `doctor`
    WORK = "work"  # (database, settings) with a current schema, by `doctor`
    PRODUCTS = "products"  # (database, settings), by `products audit` and once a day
    ARCHIVE = "archive"  # (segments that were read), by `archive verify`
    SOURCES = "sources"  # (pages that were extracted again), by `sources check`


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check; for a problem also its impact and the next step."""

    check: str = ""
    topic: Topic = Topic.MACHINE
    level: Level
    message: str
    impact: str | None = None
    next_step: str | None = None
    count: int = 0
    examples: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of some checks; it is `ok` if none of them failed."""

    at: datetime
    seconds: float
    ok: bool
    checks: int
    findings: list[Finding]

    @property
    def problems(self) -> list[Finding]:
        """Findings that are not `ok`."""
        return [finding for finding in self.findings if finding.level is not Level.OK]


# a text is the finding of a check without a problem
Result = str | Finding


def warn(
    message: str,
    next_step: str | None = None,
    impact: str | None = None,
    *,
    found: Sequence[Any] = (),
    count: int = 0,
    level: Level = Level.WARN,
) -> Finding:
    """A problem; `found` are the things that are wrong, or some of the `count` of them."""
    return Finding(
        level=level,
        message=message,
        next_step=next_step,
        impact=impact,
        count=count or len(found),
        examples=list(found[:MAX_EXAMPLES]),
    )


def fail(message: str, next_step: str | None = None, *, found: Sequence[Any] = ()) -> Finding:
    """A problem that keeps a promise from being kept; see `warn`."""
    return warn(message, next_step, found=found, level=Level.FAIL)


def failed_with(error: ForagerError) -> Finding:
    return fail(error.message, None if error.hint is None else str(error.hint))


class Check(Generic[Given]):
    """A check that can be called.

    An error that it raises is its finding, unless the database is unavailable: that ends the run.
    """

    def __init__(
        self,
        name: str,
        topic: Topic,
        impact: str,
        examine: Callable[Given, Result | Awaitable[Result]],
    ) -> None:
        self.name = name
        self.topic = topic
        self.impact = impact
        self.examine = examine

    def finding(self, result: Result) -> Finding:
        """The finding of a result: a text means that all is well."""
        if isinstance(result, str):
            result = Finding(level=Level.OK, message=result)
        impact = None if result.level is Level.OK else result.impact or self.impact
        return replace(result, check=self.name, topic=self.topic, impact=impact)

    async def __call__(self, *given: Given.args, **options: Given.kwargs) -> Finding:
        try:
            result = self.examine(*given, **options)
            return self.finding(result if isinstance(result, Result) else await result)
        except DatabaseUnavailable:
            raise
        except ForagerError as error:
            return self.finding(failed_with(error))


def check(
    name: str, topic: Topic, impact: str
) -> Callable[[Callable[Given, Result | Awaitable[Result]]], Check[Given]]:
    """Declare a check with its name, its topic, and why a problem that it finds matters."""
    return lambda examine: Check(name, topic, impact, examine)


def checks_in(*modules: ModuleType, topic: Topic | None = None) -> list[Check[...]]:
    """The checks that modules declare, in their order; a list of checks counts as well."""
    values = [value for module in modules for value in vars(module).values()]
    found = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [each for each in found if isinstance(each, Check) and topic in (None, each.topic)]


class Examination:
    """Runs checks and collects their findings.

    `show` gets each finding as soon as its check ends.

        examination = Examination()
        await examination.run(checks_in(machine), settings)
        report = examination.report()
    """

    def __init__(self, show: Callable[[Finding], None] = lambda _: None) -> None:
        self._show = show
        self._began = time.monotonic()
        self.findings: dict[str, Finding] = {}

    def add(self, finding: Finding) -> None:
        """Add a finding that no check of a registry has made."""
        self.findings[finding.check] = finding
        self._show(finding)

    async def run(self, checks: Iterable[Check[...]], *given: Any) -> None:
        """Run checks in order; raises DatabaseUnavailable, which ends the run."""
        for each in checks:
            self.add(await each(*given))

    def level(self, name: str) -> Level:
        """The level of the finding of a check that has run."""
        return self.findings[name].level

    def report(self) -> Report:
        """All findings so far."""
        findings = list(self.findings.values())
        ok = all(finding.level is not Level.FAIL for finding in findings)
        seconds = round(time.monotonic() - self._began, 3)
        return Report(datetime.now(UTC), seconds, ok, len(findings), findings)


async def run_checks(checks: Iterable[Check[...]], *given: Any) -> Report:
    """Run checks with what their topic is called with, and report their findings."""
    examination = Examination()
    await examination.run(checks, *given)
    return examination.report()
