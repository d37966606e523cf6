"""Errors as messages on standard error and exit codes."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Any

import typer
from typer.exceptions import TyperException

from forager.cli.options import Flags
from forager.cli.output import clean
from forager.errors import ErrorKind, ForagerError, WorkFailed
from forager.hints import Hint

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (ErrorKind.NOT_ALLOWED, ErrorKind.ROBOTS)

OK, FAILED, USAGE, NOT_ALLOWED, INTERRUPTED, TERMINATED = 0, 1, 2, 4, 130, 143

EXIT_CODES = {
    OK: "done",
    FAILED: "the work failed",
    USAGE: "the command, a setting or an id is wrong",
    NOT_ALLOWED: "not allowed, or not in this state",
    INTERRUPTED: f"interrupted ({TERMINATED} by SIGTERM)",
}


class Declined(ForagerError):
    """Nothing was done."""


def exit_code_of(error: BaseException, flags: Flags) -> int:
    """Print the error and return its exit code."""
    if isinstance(error, ForagerError):
        if flags.debugging:
            traceback.print_exception(error)
        print_error(error.message, error.hint)
        forbidden = isinstance(error, WorkFailed) and error.kind in _FORBIDDEN
        return NOT_ALLOWED if forbidden else error.exit_code
    if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it
        print(error, file=sys.stderr)
        return USAGE
    if isinstance(error, TyperException):
        print_error(error.format_message().replace("Value error, ", ""), _usage_hint(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        print_error("interrupted")
        return INTERRUPTED
    if isinstance(error, OSError) and error.errno in _FULL:
        print_error(f"the output cannot be written: {error.strerror}", "Free some space.")
        return FAILED
    return _unexpected(error, flags)


def print_error(message: str, hint: str | Hint | None = None) -> None:
    from rich.text import Text

    from forager.cli.output import console

    if sys.stderr is None:
        return
    stderr = console(sys.stderr)
    stderr.print(Text.assemble(("error: ", "bold red"), clean(message)), soft_wrap=True)
    if hint:
        stderr.print(Text.assemble(("hint: ", "bold"), clean(str(hint))), soft_wrap=True)


def _unexpected(error: BaseException, flags: Flags) -> int:
    if flags.debugging:
        traceback.print_exception(error)
        print_error("this should not have happened (see above)")
    else:
        print_error(
            f"this should not have happened: {type(error).__name__}: {error}",
            "Run it again with --log-level debug to see where, and report that.",
        )
    return FAILED


def _usage_hint(error: TyperException) -> str | None:
    context: Any = getattr(error, "ctx", None)
    if context is None:
        return None
    root = context.find_root()
    option = getattr(error, "option_name", None)
    if context is not root and option in {o for p in root.command.params for o in p.opts}:
        rest = context.command_path.removeprefix(root.command_path).strip()
        return f"{option} goes before the command: {root.command_path} {option} … {rest}"
    # the name of a default command is empty
    return f"See `{' '.join(context.command_path.split())} --help`."
