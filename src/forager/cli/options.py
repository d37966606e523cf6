"""Global options and options that several commands share; options declared as a dataclass."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from forager.cli.model_flags import ModelFlags, flags_of_model

if TYPE_CHECKING:
    from forager.processes.started import StartedProcess
    from forager.settings import Settings


MAX_LIST = 1000

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")]
Limit = Annotated[int, typer.Option(min=1, max=MAX_LIST, help="Maximum number of results.")]
Cursor = Annotated[str | None, typer.Option(help="Return results after this cursor.")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Allow private and loopback addresses.")
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Output file; - for standard output.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
Capacity = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Jobs to run at the same time.", show_default="setting"),
]
JobId = Annotated[str, typer.Argument(metavar="ID", help="Job ID or a unique prefix.")]


def option(help: str, *names: str, default: Any = None, **how: Any) -> Any:
    """Declare an option as the default of a parameter, or of a field for `grouped`."""
    return typer.Option(default, *names, help=help, **how)


def switch(help: str, name: str) -> Any:
    """Declare an option without a value, which is off by default."""
    return typer.Option(False, name, help=help)


def argument(help: str, *, default: Any = None, **how: Any) -> Any:
    """Declare an optional argument as the default of a parameter."""
    return typer.Argument(default, help=help, **how)


def grouped(command: Callable[..., Any]) -> Callable[..., None]:
    """Replace each parameter that is a group of options by one option per field of the group.

    A group is a dataclass, or a model (see `ModelFlags`). With `Annotated[Value, Group]` the
    command gets the result of `value()` of a dataclass, which is checked before anything else is
    done.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    models: dict[str, ModelFlags] = {}
    for each in inspect.signature(command, eval_str=True).parameters.values():
        if (flags := flags_of_model(each.annotation)) is not None:
            models[each.name] = flags
            parameters += flags.parameters()
        elif (group := _group_of(each.annotation)) is not None:
            groups[each.name] = group
            parameters += _options(group)
        else:
            parameters.append(each)

    def run(**given: Any) -> None:
        for name, group in groups.items():
            options = group(**{each.name: given.pop(each.name) for each in fields(group)})
            given[name] = options.value() if hasattr(options, "value") else options
        for name, flags in models.items():
            given[name] = flags.value(given)
        command(**given)

    return with_signature(run, command, parameters)


def _group_of(annotation: Any) -> type[Any] | None:
    kinds = (annotation, *getattr(annotation, "__metadata__", ()))
    return next((kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)), None)


def with_signature(
    run: Callable[..., None], command: Callable[..., Any], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Give `run` the name and help of `command`, and these parameters."""
    functools.update_wrapper(run, command)
    del run.__wrapped__  # type: ignore[attr-defined]
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in named}
    return run


def _options(group: type[Any]) -> list[inspect.Parameter]:
    kinds = get_type_hints(group, include_extras=True)
    kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    defaults = {
        each.name: empty if each.default is MISSING else each.default for each in fields(group)
    }
    return [
        inspect.Parameter(name, kind, default=default, annotation=kinds[name])
        for name, default in defaults.items()
    ]


# of commands that print a result and exit
ONE_SHOT_LOG_LEVEL = "warning"


@dataclass(slots=True)
class Flags:
    """Options given before the command, and the settings once they are loaded."""

    given: dict[str, Any] = field(default_factory=dict)
    settings: Settings | None = None
    # the process of a crawl in the foreground
    spare_runner: StartedProcess | None = None

    def load(self, *, quiet: bool = True, **more: Any) -> Settings:
        """Read the settings and set up logs; `quiet` commands log only warnings by default."""
        from forager.logs import configure_logs
        from forager.settings import Origin, load_settings, origins

        self.given |= {name: value for name, value in more.items() if value is not None}
        overrides = dict(self.given)
        if quiet and origins(self.given)["log_level"] is Origin.DEFAULT:
            overrides["log_level"] = ONE_SHOT_LOG_LEVEL
        self.settings = load_settings(**overrides)
        configure_logs(self.settings.log_level, self.settings.log_format, announces=True)
        return self.settings

    @property
    def debugging(self) -> bool:
        """Whether to print tracebacks; also known when the settings are invalid."""
        if self.settings is not None:
            return self.settings.log_level.lower() == "debug"
        level = self.given.get("log_level") or os.environ.get("FORAGER_LOG_LEVEL", "")
        return str(level).lower() == "debug"


def flags_of(context: typer.Context) -> Flags:
    flags = context.find_object(Flags)
    assert flags is not None  # set by the root command
    return flags
