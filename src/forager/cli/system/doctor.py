"""`forager doctor` and `forager config`: check the installation, show its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.cli import output
from forager.cli.failures import FAILED
from forager.cli.options import AsJson, flags_of
from forager.cli.output import Steps, clean
from forager.cli.running import run
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.doctor.check import Check
    from forager.jobs.job import Job
    from forager.settings import Settings


STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
COLUMN = 14


def doctor(
    context: typer.Context,
    job: Annotated[bool, typer.Option("--job", help="Also run a real job, a small one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check everything Forager depends on, and suggest fixes. Exit code 1 if something fails.

    Each problem is shown with its impact and the next step.
    """
    checks = _examine(context, job=job, as_json=as_json)
    failed = any(check.level == "fail" for check in checks)
    if as_json:
        output.show_json({"items": checks, "next_cursor": None, "ok": not failed})
    if failed:
        raise typer.Exit(FAILED)


def _examine(context: typer.Context, *, job: bool, as_json: bool) -> list[Check]:
    from forager.doctor import examine
    from forager.doctor.check import failed_with, ok

    try:
        settings = flags_of(context).load()
    except InvalidInput as error:
        wrong = failed_with("settings", error)
        if not as_json:
            _show(wrong)
        return [wrong]
    with Steps("job", 100, shown=not as_json) as steps:

        def watch(job: Job) -> None:
            steps.show(job.progress_percentage, what=f"job {job.shown_status}")

        def tell(check: Check) -> None:
            steps.stop()
            if not as_json:
                _show(check)

        well = ok("settings", _where_from(context))
        tell(well)
        return [well, *run(examine(settings, tell, watch=watch if job else None))]


def _where_from(context: typer.Context) -> str:
    from forager.settings import Origin, origins

    own = [
        f"{name} ({origin})"
        for name, origin in origins(flags_of(context).given).items()
        if origin is not Origin.DEFAULT
    ]
    return f"{len(own)} set: {', '.join(own)}" if own else "all defaults"


def _show(check: Check) -> None:
    from rich.text import Text

    console = output.console()
    line = Text.assemble(
        (f"{check.level:<6}", STYLES[check.level]), f"{check.name:<{COLUMN}}", clean(check.finding)
    )
    console.print(line, soft_wrap=True)
    for words, style in ((check.why, "dim"), (check.advice, "bold")):
        if words:
            console.print(Text(f"{'':<{6 + COLUMN}}{clean(words)}", style=style), soft_wrap=True)


app = typer.Typer(help="Look at the settings.", no_args_is_help=True)

ORIGIN_STYLES = {"flag": "cyan", "environment": "cyan", "file": "cyan", "default": "dim"}


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting as it is in force."""

    name: str
    value: Any
    origin: str
    environment: str
    description: str


@app.callback()
def config() -> None:
    """Look at the settings."""


@app.command()
def show(context: typer.Context, as_json: AsJson = False) -> None:
    """Show every setting, its value, and where it came from. Passwords are masked."""
    from forager.settings import config_file

    flags = flags_of(context)
    shown = shown_settings(flags.load(quiet=False), flags.given)
    file = config_file().absolute()
    if as_json:
        found = str(file) if file.exists() else None
        output.show_json({"items": shown, "next_cursor": None, "file": found})
        return
    output.show_table(
        {"SETTING": {}, "VALUE": {"overflow": "fold", "no_wrap": False}, "FROM": {}},
        [
            (item.name, _in_words(item.value), (item.origin, ORIGIN_STYLES[item.origin]))
            for item in shown
        ],
    )
    output.note(f"File: {file}" if file.exists() else f"File: {file} (not there)")


def shown_settings(settings: Settings, flags: dict[str, Any]) -> list[ShownSetting]:
    from forager.settings import env_name, origins

    origin = origins(flags)
    return [
        ShownSetting(
            name=name,
            value=masked(getattr(settings, name)),
            origin=origin[name].value,
            environment=env_name(name),
            description=field.description or "",
        )
        for name, field in type(settings).model_fields.items()
    ]


def masked(value: Any) -> Any:
    """The value without its secret; what is not secret of a URL stays readable."""
    from pydantic import SecretStr

    from forager.settings.values import masked_url

    if isinstance(value, SecretStr):
        return masked_url(value.get_secret_value())
    return masked_url(value) if isinstance(value, str) and "://" in value else value


def _in_words(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
