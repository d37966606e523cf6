"""Every action in all its forms: the command, the calls of the API, the place in the dashboard."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

from forager.hints import Action, Option, as_command
from forager.operations.operation import API as API
from forager.operations.operation import HandWritten, Operation
from forager.registry import calls


@dataclass(frozen=True, slots=True)
class Forms:
    """The calls of an action, and its page of the dashboard.

    An action without calls, or without a page, works only as a command on the server. Of several
    calls, the arguments of a hint decide; the first is the default.
    """

    calls: tuple[str, ...] = ()
    page: str = ""
    button: str = ""


@cache
def forms() -> dict[str, Forms]:
    """Forms by command; an option is part of the name where it leads to another place."""
    named: dict[str, list[Operation | HandWritten]] = {}
    for each in calls():
        named.setdefault(each.name, []).append(each)
    return {
        name: Forms(
            tuple(each.call for each in found),
            found[0].page,
            next((each.button for each in found if each.button), ""),
        )
        for name, found in named.items()
    }


_PARAMETER = re.compile(r"\{\w+\}")


def forms_of(action: Action) -> Forms:
    """The forms of an action; an option may lead to another place than the command alone."""
    names = [*(f"{action.name} --{name}" for name, _ in action.options), action.name]
    return next((forms()[name] for name in names if name in forms()), Forms())


def path_values(action: Action) -> list[str]:
    """The arguments that can stand in a path: placeholders and URLs cannot."""
    given = [] if action.options else [str(arg) for arg in action.args]
    return [quote(arg, safe="") for arg in given if not arg.isupper() and "://" not in arg]


def as_call(part: Action | Option) -> str:
    """The call of the API, or the field of its body."""
    if isinstance(part, Option):
        return f"`{part.name}`"
    calls, values = forms_of(part).calls, path_values(part)
    if not calls:
        return f"{as_command(part)} on the server"
    fitting = (call for call in calls if len(_PARAMETER.findall(call)) == len(values))
    method, _, path = next(fitting, calls[0]).partition(" ")
    for value in values:
        path = _PARAMETER.sub(lambda _, value=value: value, path, count=1)  # type: ignore[misc]
    return f"`{method} {API}{path}`"
