"""`forager parsers`: site parsers, their success rates, and the active version of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.cli.options import AllowPrivate, AsJson, Cursor, Limit, argument, flags_of, option
from forager.cli.output import Steps, note, show_json
from forager.cli.products import parser_views as views
from forager.cli.running import CommandContext, answers, fail_unless, lists, with_services
from forager.crawl.explain.probe import probe
from forager.crawl.options import crawl_options
from forager.errors import ErrorKind, GiveUp, InvalidInput, NotFound
from forager.parsers.backtest import backtest as run_backtest
from forager.parsers.fixtures import check_fixture, find_fixtures, read_page
from forager.parsers.overview import overview
from forager.parsers.rates import list_rates
from forager.parsers.registry import load_parsers
from forager.parsers.rollouts import roll_back, roll_out
from forager.parsers.scaffold import SavedPage, write_parser
from forager.settings import Settings
from forager.tasks.archived_page import archived_page

app = typer.Typer(
    help="Site parsers: write, test, compare, roll out and roll back.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the parser.")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="Version of the parser.")]
_SHARE = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*(%?)\s*", re.ASCII)


@app.command("list")
@answers(
    lambda found: views.show_parsers(found.parsers),
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
    views.RATE_COLUMNS,
    none="No pages were parsed in the last seven days.",
    document=views.rate_fields,
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
@answers(views.show_rollout)
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
@answers(views.show_rollout)
async def rollback(here: CommandContext, name: Name) -> object:
    """Undo the last step: end the canary, or return to the previous version."""
    _load(here.settings)
    return await roll_back(here.database, name)


@app.command()
def backtest(
    context: typer.Context,
    name: Name,
    against: Annotated[str, typer.Option(help="The version to compare with, or `generic`.")],
    version: str | None = option("The version to try.", show_default="the newest"),
    domain: str | None = option("Only pages of this domain."),
    history: bool = option(
        "All stored pages, not only the newest of each URL.", "--history", default=False
    ),
    limit: int = option("Maximum number of pages to read.", default=1000, min=1, max=10_000_000),
    as_json: AsJson = False,
) -> None:
    """Parse archived pages with two versions and show differences; stores nothing."""
    how: dict[str, Any] = {
        "version": version,
        "against": against,
        "domain": domain,
        "history": history,
    }
    with Steps("pages", shown=not as_json) as steps:
        report = with_services(
            context,
            lambda here: run_backtest(
                here.database, here.settings, name, **how, limit=limit, progress=steps.show
            ),
        )
    return show_json(views.backtest_fields(report)) if as_json else views.show_backtest(report)


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
        show_json(views.fixture_fields(results))
    else:
        views.show_fixtures(results)
    fail_unless(lambda checked: not any(differences for _, differences in checked))(results)


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
    return show_json(done) if as_json else views.show_scaffold(done)


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


def _page(context: typer.Context, page: str, url: str | None, *, allow_private: bool) -> SavedPage:
    """The page of the first fixture: a file, the stored page of a task, or fetched now."""
    if "://" in page:
        return with_services(context, lambda here: _fetched(here, page, allow_private))
    if url is None:
        raise InvalidInput("a file has no URL", hint="Give the URL of its page with --url.")
    path = Path(page)
    if not path.is_file():
        raise NotFound(f"there is no file {path}", hint="A URL begins with http:// or https://.")
    return SavedPage(url, read_page(path))


async def _fetched(here: CommandContext, url: str, allow_private: bool) -> SavedPage:
    if (saved := await archived_page(here.database, here.settings, url)) is not None:
        return saved
    options = crawl_options({"urls": [url], "strategy": "single", "allow_private": allow_private})
    found = await probe(here.database, here.settings, options, body=False)
    response = found.response
    if found.problem is not None:
        raise GiveUp(f"{response.url}: {found.problem}", kind=ErrorKind.HTTP_CLIENT)
    return SavedPage(response.url, response.body, response.headers.get("Content-Type"))
