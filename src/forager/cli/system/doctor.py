"""`forager doctor`, `support-bundle` and `config`: check the installation, show its settings."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import output
from forager.cli.failures import FAILED
from forager.cli.options import AsJson, flags_of, switch
from forager.cli.reports import show_finding
from forager.cli.steps import Steps
from forager.errors import InvalidInput
from forager.permissions import private_opener

if TYPE_CHECKING:
    from forager.checks import Report, Result
    from forager.jobs.job import Job


def doctor(
    context: typer.Context,
    job: bool = switch("Also run a small test job.", "--job"),
    as_json: AsJson = False,
) -> None:
    """Check everything Forager depends on, and suggest fixes. Exit code 1 if something fails.

    Each problem is shown with its impact and the next step.
    """
    report = _examine(context, job=job, as_json=as_json)
    if as_json:
        output.show_json(report)
    if not report.ok:
        raise typer.Exit(FAILED)


def _examine(context: typer.Context, *, job: bool, as_json: bool) -> Report:
    from forager.checks import Check, Examination, Finding, Topic, failed_with
    from forager.doctor.examination import examine

    def settings_finding(result: Result) -> Finding:
        impact = "An invalid setting does not have the intended effect."
        return Check("settings", Topic.MACHINE, impact, lambda: result).finding(result)

    with Steps("job", 100, shown=not as_json) as steps:

        def watch(job: Job) -> None:
            steps.show(job.progress_percentage, what=f"job {job.shown_status}")

        def show(finding: Finding) -> None:
            steps.stop()
            if not as_json:
                show_finding(finding)

        examination = Examination(show)
        try:
            settings = flags_of(context).load()
        except InvalidInput as error:
            examination.add(settings_finding(failed_with(error)))
        else:
            examination.add(settings_finding(_where_from(context)))
            asyncio.run(examine(settings, examination, watch=watch if job else None))
        return examination.report()


def _where_from(context: typer.Context) -> str:
    from forager.settings import Origin, origins

    own = [
        f"{name} ({origin})"
        for name, origin in origins(flags_of(context).given).items()
        if origin is not Origin.DEFAULT
    ]
    return f"{len(own)} set: {', '.join(own)}" if own else "all defaults"


def support_bundle(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, in JSON.")],
) -> None:
    """Write versions, settings, findings of the doctor, metrics and errors into a file.

    The file contains no pages, URLs, keys or passwords. Read it before you send it.
    """
    from forager.doctor.bundle import support_bundle as collect
    from forager.settings.loading import shown_settings

    flags = flags_of(context)
    settings = flags.load()
    bundle = asyncio.run(collect(settings))
    bundle["settings"] = {
        shown.name: shown.value
        for shown in shown_settings(settings, flags.given)
        if shown.origin != "default"
    }
    try:
        descriptor = private_opener(str(file), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        raise InvalidInput(f"{file} exists", hint="Name a new file.") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror or error}") from None
    with os.fdopen(descriptor, "wb") as target:
        target.write(output.json_bytes(bundle))
    output.say(f"Support bundle: {file}")


app = typer.Typer(help="Show the settings.", no_args_is_help=True)

ORIGIN_STYLES = {"flag": "cyan", "environment": "cyan", "file": "cyan", "default": "dim"}


@app.callback()
def config() -> None:
    """Show the settings."""


@app.command()
def show(context: typer.Context, as_json: AsJson = False) -> None:
    """Show every setting, its value, and where it came from. Passwords are masked."""
    from forager.settings import config_file
    from forager.settings.loading import setting_text, shown_settings

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
            (item.name, setting_text(item.value), (item.origin, ORIGIN_STYLES[item.origin]))
            for item in shown
        ],
    )
    output.note(f"File: {file}" if file.exists() else f"File: {file} (not there)")
