"""What goes wrong, in words on standard error and a number for scripts."""

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
    """Say what happened, and return the exit code that says it to scripts."""
    if isinstance(error, ForagerError):
        if flags.debugging:
            traceback.print_exception(error)
        complain(error.message, error.hint)
        return NOT_ALLOWED if _refused(error) else error.exit_code
    if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it
        print(error, file=sys.stderr)
        return USAGE
    if isinstance(error, TyperException):
        complain(error.format_message(), _usage_hint(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        complain("interrupted")
        return INTERRUPTED
    if isinstance(error, OSError) and error.errno in _FULL:
        complain(f"the output cannot be written: {error.strerror}", "Free some space.")
        return FAILED
    return _unexpected(error, flags)


def _refused(error: ForagerError) -> bool:
    """Whether a piece of work failed because it may not be done."""
    kinds = (ErrorKind.NOT_ALLOWED, ErrorKind.ROBOTS)
    return isinstance(error, WorkFailed) and error.kind in kinds


def complain(message: str, hint: str | Hint | None = None) -> None:
    """Print an error; the work may go on after it."""
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
        complain("this should not have happened (see above)")
    else:
        complain(
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
    return f"See `{context.command_path} --help`."
