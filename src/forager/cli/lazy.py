"""Commands that are imported when they are called: a start should not pay for all the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group


class LazyCommands(MutableMapping[str, Any]):
    """Commands and groups of commands by name, each made at the first look at it.

    A place is `module:name` of a function or of a Typer app, below `forager.cli`.
    """

    def __init__(self, places: Mapping[str, str], make_app: Callable[[], typer.Typer]) -> None:
        self._places = dict(places)
        self._make_app = make_app
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name, self._places[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._places[name] = ""
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._made.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def _make(self, name: str, place: str) -> Any:
        module, _, attribute = place.partition(":")
        found = getattr(import_module(f"forager.cli.{module}"), attribute)
        app = self._make_app()
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
        return get_group(app).commands[name]


def lazy_group(places: Mapping[str, str], make_app: Callable[[], typer.Typer]) -> type[TyperGroup]:
    """A kind of group, for `typer.Typer(cls=…)`, whose commands are found at these places."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = LazyCommands(places, make_app)

    return LazyGroup
