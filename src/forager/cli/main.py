"""The `forager` command: its global options, its commands, and how it ends."""

from __future__ import annotations

import os
import sys
from collections import UserDict
from collections.abc import Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from forager import __version__
from forager.cli.failures import EXIT_CODES, exit_code_of
from forager.cli.options import Flags, option
from forager.cli.output import silence_stdout
from forager.cli.running import leave_on_sigterm
from forager.processes.started import StartedProcess

# a paragraph ends only at an empty line
EPILOG = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in EXIT_CODES.items()) + "."
# by name: module and attribute of a function, a Typer app or a group of operations, and the line in
# the help, which is listed without importing the commands
COMMANDS = {
    "crawl": ("crawls.crawl:crawl", "Crawl a site and account for every URL."),
    "resume": ("crawls.crawl:resume", "Continue a paused crawl from its last commit."),
    "demo": ("crawls.crawl:demo", "Crawl the bundled documentation site."),
    "explain": ("crawls.explain:explain", "Show the outcome of a URL and why."),
    "fetch": ("crawls.explain:fetch", "Fetch one URL and show the response."),
    "parse": ("crawls.parse:parse", "Show what is extracted from one page."),
    "export": ("crawls.export:export", "Export the pages or URLs of a job."),
    "up": ("system.up:up", "Run everything on this machine."),
    "api": ("system.up:api", "Serve the HTTP API and the dashboard."),
    "mcp": ("system.up:mcp", "Serve the Model Context Protocol."),
    "skill": ("system.skill:app", "Instructions for coding agents (SKILL.md)."),
    "worker": ("system.worker:worker", "Run jobs and tasks."),
    "scheduler": ("system.worker:scheduler", "Dispatch due tasks to the workers."),
    "watchdog": ("system.worker:watchdog", "Recover the work of workers that died."),
    "workers": ("forager.jobs.worker_operations:worker_list", "Workers and background services."),
    "doctor": ("system.doctor:doctor", "Check everything Forager depends on."),
    "support-bundle": ("system.doctor:support_bundle", "Write a file for a problem report."),
    "read": ("crawls.search:read", "Print the published markdown of a page."),
    "search": ("crawls.search:app", "Search published documents."),
    "jobs": ("crawls.jobs:app", "List, pause, resume, cancel and retry jobs."),
    "sources": ("crawls.sources:app", "Crawled sources: generations, differences, schedules."),
    "products": ("products.products:app", "Products: prices, stock, history, search, export."),
    "tasks": ("products.tasks:app", "Tracked pages: due times, outcomes, holds."),
    "errors": ("forager.failures.operations:errors", "Errors of jobs and tasks, grouped by cause."),
    "dead-letters": (
        "forager.tasks.operations.letters:dead_letters",
        "Tasks that failed permanently.",
    ),
    "domains": (
        "forager.crawl.operations.hosts:domains",
        "Hosts, their crawl settings and throttling.",
    ),
    "proxies": ("network.proxies:app", "Proxies for crawls, and their health."),
    "events": ("network.events:app", "Events of products, sources and crawls."),
    "items": (
        "forager.products.items.operations:items",
        "The same article in all shops: best prices, price index.",
    ),
    "alerts": ("forager.products.alerts.operations:alerts", "Alert rules on prices and stock."),
    "webhooks": ("forager.webhooks.operations:webhooks", "Webhook URLs and their deliveries."),
    "parsers": ("products.parsers:app", "Site parsers: test, compare, roll out, roll back."),
    "keys": ("forager.access.operations:keys", "API keys, their scopes and quotas."),
    "analytics": ("products.analytics:app", "Export to Parquet files; query them."),
    "archive": ("system.archive:app", "Raw responses: show, verify, move, delete."),
    "db": ("system.db:app", "Schema, backups and the embedded server."),
    "config": ("system.doctor:app", "Show the settings."),
}


class LazyCommands(UserDict[str, Any]):
    """Commands and groups of commands by name; each is imported when it is used."""

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if isinstance(command, tuple):
            command = self[name] = self._load(name, *command[0].split(":"))
        return command

    def _load(self, name: str, module: str, attribute: str) -> Any:
        is_derived = module.startswith("forager.")
        found = getattr(import_module(module if is_derived else f"forager.cli.{module}"), attribute)
        if is_derived:
            from forager.cli.operations import commands_of

            found = commands_of(found)
        app = _plain_app()
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
        return get_group(app).commands[name]


class LazyGroup(TyperGroup):
    """The top-level commands; the module of each is imported when it is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - an override
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


class LogLevel(StrEnum):
    """The choices of `--log-level`."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class LogFormatOption(StrEnum):
    """The choices of `--log-format`."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


def _plain_app(**options: Any) -> typer.Typer:
    # plain help: quicker, and as readable through a pipe as on a terminal
    return typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, **options)


app = _plain_app(
    name="forager",
    cls=LazyGroup,
    help="A durable, polite, fast crawler that never loses work.",
    epilog=EPILOG,
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forager {__version__}")
        raise typer.Exit


@app.callback()
def forager(
    context: typer.Context,
    home: Path | None = option("Data folder: embedded database, archive, keys."),
    database_url: str | None = option("PostgreSQL to use instead of the embedded one."),
    config_path: Path | None = option("Settings file.", "--config", show_default="forager.toml"),
    log_level: LogLevel | None = option("Minimum log level."),
    log_format: LogFormatOption | None = option("Log format."),
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    flags = context.ensure_object(Flags)
    given = {
        "home": home,
        "database_url": database_url,
        "log_level": log_level and log_level.value,
        "log_format": log_format and log_format.value,
    }
    flags.given |= {name: value for name, value in given.items() if value is not None}
    if config_path is not None:
        # an environment variable, so that child processes read the same file
        os.environ["FORAGER_CONFIG"] = str(config_path.absolute())


def run(arguments: Sequence[str], spare_runner: StartedProcess | None = None) -> int:
    """Run one command line and return its exit code."""
    flags = Flags(spare_runner=spare_runner)
    try:
        command = typer.main.get_command(app)
        code = command.main(
            args=list(arguments), prog_name="forager", standalone_mode=False, obj=flags
        )
        return code if isinstance(code, int) else 0
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except BaseException as error:
        return exit_code_of(error, flags)


def main(spare_runner: StartedProcess | None = None) -> None:
    leave_on_sigterm()
    if sys.stdout is None:  # as under `>&-`
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    code = run(sys.argv[1:], spare_runner)
    try:
        sys.stdout.flush()
    except OSError as error:
        silence_stdout()
        # a reader that has left is no failure, a full disk is
        if not code and not isinstance(error, BrokenPipeError):
            code = exit_code_of(error, Flags())
    sys.exit(code)
