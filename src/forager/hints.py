"""Hints name actions and options as data; each adapter renders them in its own terms."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Action:
    """An action by the name of its command, with arguments and options."""

    name: str
    args: tuple[object, ...] = ()
    options: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the request that failed."""

    name: str


Render = Callable[[Action | Option], str]


@dataclass(frozen=True, slots=True, init=False)
class Hint:
    """A sentence with a `{}` for each part. As a string it shows shell commands."""

    text: str
    parts: tuple[str | Action | Option | Hint, ...]

    def __init__(self, text: str, *parts: str | Action | Option | Hint) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "parts", parts)

    def __str__(self) -> str:
        return render(self, as_command)


def unknown_name(name: str, known: Iterable[str]) -> str:
    """The message for a misspelled name of an option or a field."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    return f"unknown; did you mean {near[0]}?" if near else f"unknown; expected: {', '.join(names)}"


def action(name: str, *args: object, **options: object) -> Action:
    """An action in a hint, by its command and arguments; each adapter writes it in its terms."""
    return Action(name, args, tuple(options.items()))


def render(hint: str | Hint, show: Render) -> str:
    """The sentence, with actions and options as `show` writes them."""
    if isinstance(hint, str):
        return hint
    return hint.text.format(
        *(show(p) if isinstance(p, Action | Option) else render(p, show) for p in hint.parts)
    )


def as_command(part: Action | Option) -> str:
    """What to type in a shell."""
    if isinstance(part, Option):
        return _flag(part.name)
    command = ["forager", *part.name.split(), *(shlex.quote(str(arg)) for arg in part.args)]
    for name, value in part.options:
        command += [_flag(name)] if value is True else [_flag(name), shlex.quote(str(value))]
    return f"`{' '.join(command)}`"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
