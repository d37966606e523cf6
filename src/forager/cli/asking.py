"""Asking a person before something is destroyed; programs must say --yes."""

from __future__ import annotations

import sys

import typer

from forager.cli.failures import Declined
from forager.errors import InvalidInput


def confirm(question: str, *, yes: bool) -> None:
    """Return if it may be done; otherwise raise what says why not."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(
            f"{question} There is no terminal to ask on.", hint="Give --yes to do it."
        )
    if not typer.confirm(question, err=True):
        raise Declined
