"""`forager parsers`: site parsers, their success rates, and the active version of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.cli.crawls.parse import fetched_page
from forager.cli.failures import FAILED
from forager.cli.options import (
    AllowPrivate,
    AsJson,
    Cursor,
    Limit,
    argument,
    flags_of,
    option,
    switch,
)
from forager.cli.output import (
    Columns,
    counted,
    fields_of,
    note,
    on_one_line,
    say,
    show_json,
    show_rows,
    show_table,
)
from forager.cli.running import CommandContext, answers, lists, with_services
from forager.errors import InvalidInput, NotFound
from forager.parsers.backtest import Backtest, VersionReport
from forager.parsers.backtest import backtest as run_backtest
from forager.parsers.fixtures import Difference, Fixture, check_fixture, find_fixtures, read_page
from forager.parsers.overview import ParserLine, overview
from forager.parsers.page_cache import Page, page_of
from forager.parsers.pattern import VersionRate
from forager.parsers.rates import list_rates
from forager.parsers.registry import load_parsers
from forager.parsers.rollouts import Rollout, roll_back, roll_out
from forager.parsers.scaffold import Scaffold, write_parser
from forager.settings import Settings
from forager.tasks.archived_page import archived_page

app = typer.Typer(
    help="Site parsers: write, test, compare, roll out and roll back.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the parser.")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="Version of the parser.")]
_SHARE = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*(%?)\s*", re.ASCII)


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
        _note_missing(each.name, each.version, each)


def _note_missing(parser: str, version: str, where: Rollout | ParserLine) -> None:
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
    pages = fields_of(rate, "recent_pages", "recent_rate", "week_pages", "week_rate")
    return {**fields_of(rate, "domain", "parser", "version", "role"), **pages}


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
    _note_missing(rollout.parser, rollout.canary_version or rollout.active_version, rollout)


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
        **fields_of(report, "parser", "pages", "unreadable", "truncated"),
        "old": _version_fields(report.old),
        "new": _version_fields(report.new),
        "fields": report.fields,
    }


def _version_fields(version: VersionReport) -> dict[str, Any]:
    return {
        **fields_of(version, "version", "rate", "outcomes"),
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


@app.command("list")
@answers(
    lambda found: show_parsers(found.parsers),
    document=lambda found: {"items": found.parsers, "broken": found.broken},
)
async def list_(here: CommandContext) -> object:
    """List parsers with their versions, patterns, rollout state and success rates."""
    found = await overview(here.database, here.settings)
    for plugin in found.broken:
        note(f"{plugin.origin} was skipped: {plugin.reason}")
    return found


@app.command()
@lists(
    RATE_COLUMNS,
    none="No pages were parsed in the last seven days.",
    document=rate_fields,
)
async def rates(
    here: CommandContext,
    domain: str | None = option("Only this domain."),
    limit: Limit = 100,
    cursor: Cursor = None,
) -> object:
    """Show the success rate of each version per domain: last 100 pages, last 7 days."""
    return await list_rates(here.database, domain=domain, cursor=cursor, limit=limit)


@app.command()
@answers(show_rollout)
async def rollout(
    here: CommandContext,
    name: Name,
    version: Version,
    canary: str | None = option(
        "Only run it beside the active version, on this share of tasks: 10%."
    ),
) -> object:
    """Activate a version; with --canary, run it on a share of the tasks first."""
    share = None if canary is None else parse_share(canary)
    _load(here.settings)
    return await roll_out(here.database, here.settings, name, version, canary=share)


@app.command()
@answers(show_rollout)
async def rollback(here: CommandContext, name: Name) -> object:
    """Undo the last step: end the canary, or return to the previous version."""
    _load(here.settings)
    return await roll_back(here.database, name)


@app.command()
@answers(show_backtest, document=backtest_fields)
async def backtest(
    here: CommandContext,
    name: Name,
    against: Annotated[str, typer.Option(help="The version to compare with, or `generic`.")],
    version: str | None = option("The version to try.", show_default="the newest"),
    domain: str | None = option("Only pages of this domain."),
    history: bool = switch("All stored pages, not only the newest of each URL.", "--history"),
    limit: int = option("Maximum number of pages to read.", default=1000, min=1, max=10_000_000),
) -> object:
    """Parse archived pages with two versions and show differences; stores nothing."""
    with here.steps("pages") as steps:
        return await run_backtest(
            here.database,
            here.settings,
            name,
            version=version,
            against=against,
            domain=domain,
            history=history,
            limit=limit,
            progress=steps.show,
        )


@app.command("test")
def run_fixtures(
    context: typer.Context,
    paths: list[Path] | None = argument("Fixtures, or folders with fixtures.", metavar="[PATH]..."),
    module: list[str] | None = option(
        "Also load the parsers of this module or file (repeatable).", "--module"
    ),
    as_json: AsJson = False,
) -> None:
    """Run parsers on saved pages and compare the fields with the expected ones."""
    _load(flags_of(context).load(), *(module or ()))
    results = [(each, check_fixture(each)) for each in find_fixtures(paths or [Path()])]
    if not results:
        raise NotFound(
            "there are no fixtures here", hint="A fixture is a page.json beside a page.html."
        )
    if as_json:
        show_json(fixture_fields(results))
    else:
        show_fixtures(results)
    if any(differences for _, differences in results):
        raise typer.Exit(FAILED)


@app.command()
def new(
    context: typer.Context,
    name: Name,
    pattern: Annotated[
        list[str],
        typer.Option(help="URL pattern that it handles: 'shop.example/item/*' (repeatable)."),
    ],
    page: str | None = option(
        "Page for the first fixture; the stored page of a task is not fetched again.",
        "--from",
        metavar="FILE_OR_URL",
    ),
    url: str | None = option("The URL of the file."),
    folder: Path = option("Folder to write to.", "--dir", default=Path()),
    allow_private: AllowPrivate = False,
    as_json: AsJson = False,
) -> None:
    """Create a new parser: a module and, if a page is given, its first fixture."""
    saved = None if page is None else _page(context, page, url, allow_private=allow_private)
    done = write_parser(name, tuple(pattern), folder, saved)
    return show_json(done) if as_json else show_scaffold(done)


def parse_share(text: str) -> float:
    """ "10%" and "0.1" are the same share."""
    match = _SHARE.fullmatch(text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share <= 1:
        raise InvalidInput(
            f"{text!r} is not a share of the tasks",
            hint="Write it as 10% or 0.1: more than 0%, at most 100%.",
        )
    return share


def _load(settings: Settings, *modules: str) -> None:
    for plugin in load_parsers((*settings.parser_modules, *modules)).broken:
        note(f"{plugin.origin} was skipped: {plugin.reason}")


def _page(context: typer.Context, page: str, url: str | None, *, allow_private: bool) -> Page:
    """The page of the first fixture: a file, the stored page of a task, or fetched now."""
    if "://" in page:
        return with_services(context, lambda here: _saved_page(here, page, allow_private))
    if url is None:
        raise InvalidInput("a file has no URL", hint="Give the URL of its page with --url.")
    path = Path(page)
    if not path.is_file():
        raise NotFound(f"there is no file {path}", hint="A URL begins with http:// or https://.")
    return Page(url, None, read_page(path))


async def _saved_page(here: CommandContext, url: str, allow_private: bool) -> Page:
    if (saved := await archived_page(here.database, here.settings, url)) is not None:
        return saved
    payload = {"urls": [url], "strategy": "single", "allow_private": allow_private}
    response = await fetched_page(here, payload)
    return page_of(response)
