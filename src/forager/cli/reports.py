"""The report of checks, for every command that runs some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forager.cli import output
from forager.cli.output import clean, counted, note, on_one_line
from forager.cli.running import answers

if TYPE_CHECKING:
    from forager.checks import Finding, Report

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
LEVEL_COLUMN = 6
NAME_COLUMN = 18
SHOWN = 10


def show_finding(finding: Finding) -> None:
    from rich.text import Text

    console = output.console()
    count = f": {finding.count}" if finding.count else ""
    console.print(
        Text.assemble(
            (f"{finding.level:<{LEVEL_COLUMN}}", STYLES[finding.level]),
            f"{finding.check.replace('_', ' '):<{NAME_COLUMN - 1}} ",
            clean(finding.message + count),
        ),
        soft_wrap=True,
    )
    for line, style in _details(finding):
        indented = f"{'':<{LEVEL_COLUMN + NAME_COLUMN}}{clean(line)}"
        console.print(Text(indented, style=style), soft_wrap=True)


def _details(finding: Finding) -> Iterator[tuple[str, str]]:
    for example in finding.examples[:SHOWN]:
        yield f"- {on_one_line(str(example))}", ""
    if finding.examples and finding.count > SHOWN:
        yield f"- {finding.count - SHOWN} more", "dim"
    if finding.impact:
        yield finding.impact, "dim"
    if finding.next_step:
        yield finding.next_step, "bold"


def _show_report(report: Report) -> None:
    for finding in report.findings:
        show_finding(finding)
    problems = counted(len(report.problems), "problem")
    note(f"{counted(report.checks, 'check')} in {report.seconds:.1f} s: {problems}")


# a command that answers with a report, and fails if one of its checks does
reports = answers(_show_report, succeeded=lambda report: report.ok)
