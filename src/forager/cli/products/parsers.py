"""`forager parsers`: site parsers, their success rates, and the active version of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.cli.crawls.parse import fetched_page
from forager.cli.failures import FAILED
from forager.cli.operations import commands_of
from forager.cli.options import AllowPrivate, AsJson, Yes, argument, flags_of, option, switch
from forager.cli.output import counted, note, on_one_line, say, show_json, show_table
from forager.cli.running import CommandServices, answers, confirm, with_services
from forager.errors import InvalidInput, NotFound
from forager.parsers.backtest import Backtest, VersionReport
from forager.parsers.backtest import backtest as run_backtest
from forager.parsers.fixtures import Difference, Fixture, check_fixture, find_fixtures, read_page
from forager.parsers.operations import BacktestReport, RereadingReport, parsers
from forager.parsers.page_cache import CachedPage, page_of
from forager.parsers.registry import load_parsers
from forager.parsers.scaffold import Scaffold, write_parser
from forager.settings import Settings
from forager.tasks.archived_page import archived_page
from forager.tasks.rereading import ArchiveReread, reread_archive

app = commands_of(parsers)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the parser.")]


_SHOWN = 60


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


def show_backtest(report: Backtest) -> None:
    if not report.pages:
        note(f"No page of parser {report.parser} is in the archive.")
        return _show_missing(report)
    show_table(
        "VERSION, PAGES>, GOOD>, MS/PAGE>, OUTCOMES",
        [_version_row(report.old, "old"), _version_row(report.new, "new")],
    )
    say(f"{counted(report.outcomes_differ, 'page')} with another outcome")
    say("")
    show_table(
        "FIELD, EQUAL>, CHANGED>, GAINED>, LOST>",
        [(n, f.equal, f.changed, f.gained, f.lost) for n, f in report.fields.items()],
    )
    _show_examples(report)
    return _show_missing(report)


def _version_row(version: VersionReport, label: str) -> tuple[Any, ...]:
    outcomes = ", ".join(f"{count} {name}" for name, count in version.outcomes.most_common())
    message = f"{version.version} ({label})"
    return (
        message,
        version.pages,
        "" if version.rate is None else f"{version.rate:.1%}",
        version.milliseconds,
        outcomes,
    )


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


@app.command()
@answers(show_backtest, document=lambda report: BacktestReport.of(report).model_dump(mode="json"))
async def backtest(
    services: CommandServices,
    name: Name,
    against: Annotated[str, typer.Option(help="The version to compare with, or `generic`.")],
    version: str | None = option("The version to try.", show_default="the newest"),
    domain: str | None = option("Only pages of this domain."),
    history: bool = switch("All stored pages, not only the newest of each URL.", "--history"),
    limit: int = option("Maximum number of pages to read.", default=1000, min=1, max=10_000_000),
) -> object:
    """Parse archived pages with two versions and show differences; stores nothing."""
    with services.steps("pages") as steps:
        return await run_backtest(
            services.database,
            services.settings,
            name,
            version=version,
            against=against,
            domain=domain,
            history=history,
            limit=limit,
            progress=steps.show,
        )


def show_rereading(report: ArchiveReread) -> None:
    show_table(
        "URL…, REMOVED>, ADDED>, PRICE>, NOW>, LOWEST>, NOW >, HIGHEST>, NOW  >",
        [
            (e.url, e.removed, e.added, e.old_price, e.price, e.old_lowest, e.lowest,
             e.old_highest, e.highest)
            for e in report.examples
        ],
    )  # fmt: skip
    verb = "changed" if report.written else "would change"
    note(
        f"{report.parser} {report.version} read {counted(report.pages, 'page')} of"
        f" {counted(report.products, 'product')}. It {verb} the history of {report.corrected:,}"
        f" (entries: {report.removed:,} removed, {report.added:,} added), and"
        f" {counted(report.repriced, 'current price')}."
    )
    if report.unreadable:
        note(f"{counted(report.unreadable, 'page')} could not be read from the archive.")


@app.command()
@answers(show_rereading, document=lambda report: RereadingReport.of(report).model_dump(mode="json"))
async def apply(
    services: CommandServices,
    name: Name,
    version: str | None = option("The version that reads.", show_default="the active one"),
    domain: str | None = option("Only pages of this domain."),
    rewrite_history: bool = switch(
        "Store the corrections; without it, show them only.", "--rewrite-history"
    ),
    yes: Yes = False,
) -> object:
    """Read archived pages again with a version and correct price histories.

    Without --rewrite-history, shows the changes of histories, lowest and highest prices, and stores
    nothing. Nothing is fetched, and no alert is triggered.
    """
    if rewrite_history:
        preview = await _reread(services, name, version, domain)
        if not preview.corrected:
            return preview
        if not services.as_json:
            show_rereading(preview)
        confirm(f"Correct the history of {counted(preview.corrected, 'product')}?", yes=yes)
    return await _reread(services, name, version, domain, write=rewrite_history)


async def _reread(
    services: CommandServices,
    name: str,
    version: str | None,
    domain: str | None,
    *,
    write: bool = False,
) -> ArchiveReread:
    with services.steps("pages") as steps:
        return await reread_archive(
            services.database,
            services.settings,
            name,
            version=version,
            domain=domain,
            write=write,
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


def _load(settings: Settings, *modules: str) -> None:
    for plugin in load_parsers((*settings.parser_modules, *modules)).broken:
        note(f"{plugin.origin} was skipped: {plugin.reason}")


def _page(context: typer.Context, page: str, url: str | None, *, allow_private: bool) -> CachedPage:
    """The page of the first fixture: a file, the stored page of a task, or fetched now."""
    if "://" in page:
        return with_services(context, lambda services: _saved_page(services, page, allow_private))
    if url is None:
        raise InvalidInput("a file has no URL", hint="Give the URL of its page with --url.")
    path = Path(page)
    if not path.is_file():
        raise NotFound(f"there is no file {path}", hint="A URL begins with http:// or https://.")
    return CachedPage(url, None, read_page(path))


async def _saved_page(services: CommandServices, url: str, allow_private: bool) -> CachedPage:
    if (saved := await archived_page(services.database, services.settings, url)) is not None:
        return saved
    payload = {"urls": [url], "strategy": "single", "allow_private": allow_private}
    response = await fetched_page(services, payload)
    return page_of(response)
