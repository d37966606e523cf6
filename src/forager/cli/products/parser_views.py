"""Parsers, rates, roll-outs and backtests in the words people read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forager.cli.output import Columns, counted, note, on_one_line, say, show_rows, show_table
from forager.parsers.backtest import Backtest, VersionReport
from forager.parsers.fixtures import Difference, Fixture
from forager.parsers.overview import ParserLine
from forager.parsers.pattern import VersionRate
from forager.parsers.rollouts import Rollout
from forager.parsers.scaffold import Scaffold

_STYLES = {"active": "green", "canary": "yellow", "idle": "dim", "missing": "red"}
_SHOWN = 60
_NAMED_WORKERS = 5


_PARSER_COLUMNS: Columns = {
    "PARSER": "name",
    "VERSION": "version",
    "STATE": lambda each: (_state_words(each), _STYLES[each.state]),
    "LAST 100>": lambda each: percent(each.recent_rate),
    "7 DAYS>": lambda each: percent(each.week_rate),
    "FROM": "origin",
    "PATTERNS…": lambda each: ", ".join(each.patterns),
}


def show_parsers(parsers: Sequence[ParserLine]) -> None:
    show_rows(_PARSER_COLUMNS, parsers)
    for each in parsers:
        note_missing(each.name, each.version, each)


def note_missing(parser: str, version: str, where: Rollout | ParserLine) -> None:
    """Name the workers that cannot use a version."""
    if where.missing_on:
        workers = counted(len(where.missing_on), "worker")
        named = ", ".join(where.missing_on[:_NAMED_WORKERS])
        note(f"{parser} {version} is not installed on {workers}: {named}")


def _state_words(each: ParserLine) -> str:
    return f"{each.state} {each.canary_share:.0%}" if each.canary_share else each.state


def percent(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1%}"


def rate_fields(rate: VersionRate) -> dict[str, Any]:
    names = ("domain", "parser", "version", "role", "recent_pages", "recent_rate", "week_pages")
    return {name: getattr(rate, name) for name in (*names, "week_rate")}


RATE_COLUMNS: Columns = {
    "DOMAIN": "domain",
    "PARSER": "parser",
    "VERSION": "version",
    "ROLE": "role",
    "OF LAST 100>": "recent_pages",
    "GOOD>": lambda rate: percent(rate.recent_rate),
    "IN 7 DAYS>": "week_pages",
    "GOOD >": lambda rate: percent(rate.week_rate),
}


def show_rollout(rollout: Rollout) -> None:
    say(f"{rollout.parser}: version {rollout.active_version} is active")
    if rollout.canary_version is not None:
        say(f"version {rollout.canary_version} runs on {rollout.canary_share:.1%} of the tasks")
    note("Workers follow within seconds.")
    note_missing(rollout.parser, rollout.canary_version or rollout.active_version, rollout)


Results = Sequence[tuple[Fixture, list[Difference]]]


def show_fixtures(results: Results) -> None:
    for fixture, differences in results:
        say(f"{'FAIL' if differences else 'ok  '} {fixture.path}", "red" if differences else "")
        for difference in differences:
            say(f"     {difference}")
    failed = sum(bool(differences) for _, differences in results)
    note(f"{counted(len(results), 'fixture')}, {failed} failed")


def fixture_fields(results: Results) -> list[dict[str, Any]]:
    return [
        {"path": fixture.path, "ok": not differences, "differences": differences}
        for fixture, differences in results
    ]


def show_scaffold(done: Scaffold) -> None:
    say(f"wrote {done.module}")
    if done.fixture is not None:
        say(f"wrote {done.fixture}: correct what is expected there")
        note(f"Then: forager parsers test {done.fixture.parent} --module {done.module}")
    note(f"To have it found once it is installed, add to pyproject.toml:\n\n{done.entry_point}\n")
    note(f"Or without a package: FORAGER_PARSER_MODULES={done.module.absolute()}")


def backtest_fields(report: Backtest) -> dict[str, Any]:
    return {
        "parser": report.parser,
        "pages": report.pages,
        "unreadable": report.unreadable,
        "truncated": report.truncated,
        "old": _version_fields(report.old),
        "new": _version_fields(report.new),
        "fields": report.fields,
    }


def _version_fields(version: VersionReport) -> dict[str, Any]:
    return {
        "version": version.version,
        "rate": version.rate,
        "outcomes": version.outcomes,
        "milliseconds_per_page": version.milliseconds,
        "errors": version.errors,
    }


def show_backtest(report: Backtest) -> None:
    if not report.pages:
        note(f"No page of parser {report.parser} is in the archive.")
        return _show_missing(report)
    show_table(
        "VERSION, PAGES>, GOOD>, MS/PAGE>, OUTCOMES",
        [_version_row(report.old, "old"), _version_row(report.new, "new")],
    )
    say("")
    show_table(
        "FIELD, EQUAL>, CHANGED>, GAINED>, LOST>",
        [(n, f.equal, f.changed, f.gained, f.lost) for n, f in report.fields.items()],
    )
    _show_examples(report)
    return _show_missing(report)


def _version_row(version: VersionReport, label: str) -> tuple[Any, ...]:
    outcomes = ", ".join(f"{count} {name}" for name, count in version.outcomes.most_common())
    words = f"{version.version} ({label})"
    return words, version.pages, percent(version.rate), version.milliseconds, outcomes


def _show_examples(report: Backtest) -> None:
    for name, field in report.fields.items():
        for example in field.examples:
            old, new = _short(example.old), _short(example.new)
            say(f"{name} {example.kind}: {old} -> {new}  {example.url}")
    for version in (report.old, report.new):
        for error in version.errors:
            say(f"version {version.version}: {on_one_line(error.message)}  {error.url}", "red")


def _short(value: Any) -> str:
    text = "nothing" if value is None else on_one_line(str(value))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _show_missing(report: Backtest) -> None:
    if report.unreadable:
        note(f"{counted(report.unreadable, 'page')} could not be read from the archive.")
    if report.truncated:
        note("There are more pages: raise --limit.")
