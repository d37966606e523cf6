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
from forager.errors import ErrorKind, ForagerError, WorkFailed, error_with_type
from forager.hints import Hint
from forager.validation import message_of, sentence

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
    if isinstance(error, BaseExceptionGroup):  # of tasks that ran side by side: each says why
        return max(exit_code_of(each, flags) for each in error.exceptions)
    if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it
        print(error, file=sys.stderr)
        return USAGE
    if isinstance(error, TyperException):
        print_error(_usage_message(error), _usage_hint(error))
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
            f"this should not have happened: {error_with_type(error)}",
            "Run it again with --log-level debug to see where, and report that.",
        )
    return FAILED


def _usage_message(error: TyperException) -> str:
    """The message of Typer; if Pydantic has written it, a sentence instead."""
    parameter: Any = getattr(error, "param", None)
    problems = getattr(error.__cause__, "errors", None)
    if problems is None or parameter is None:
        return error.format_message()
    is_option = parameter.param_type_name == "option"
    name = parameter.opts[0] if is_option else (parameter.metavar or parameter.name).rstrip(".")
    return sentence(name, message_of(problems()[0]))


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
