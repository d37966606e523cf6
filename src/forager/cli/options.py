"""Global options and options that several commands share; options declared as a dataclass."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from forager.amounts import parse_duration
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.processes.started import StartedProcess
    from forager.settings import Settings


MAX_LIST = 1000

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")]
Limit = Annotated[int, typer.Option(min=1, max=MAX_LIST, help="Maximum number of results.")]
Cursor = Annotated[str | None, typer.Option(help="Return results after this cursor.")]
Domain = Annotated[
    str | None,
    typer.Option(help="Only this host, its subdomains, or the domain that covers it."),
]
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
Reason = Annotated[str | None, typer.Option(help="Reason, kept in the job's history.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="Job ID or a unique prefix.")]
JobIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Job IDs or unique prefixes.")]


def option(help: str, *names: str, default: Any = None, **how: Any) -> Any:
    """Declare an option as the default of a parameter, or of a field for `grouped`."""
    return typer.Option(default, *names, help=help, **how)


def argument(help: str, *, default: Any = None, **how: Any) -> Any:
    """Declare an optional argument as the default of a parameter."""
    return typer.Argument(default, help=help, **how)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter whose type is a dataclass by one option per field of that class."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for each in inspect.signature(command, eval_str=True).parameters.values():
        if isinstance(each.annotation, type) and is_dataclass(each.annotation):
            groups[each.name] = each.annotation
            parameters += _options(each.annotation)
        else:
            parameters.append(each)

    def run(**given: Any) -> None:
        for name, group in groups.items():
            own = {each.name: given.pop(each.name) for each in fields(group)}
            given[name] = group(**own)
        command(**given)

    return with_signature(run, command, parameters)


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
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=kinds[each.name],
        )
        for each in fields(group)
    ]


def moment(text: str | None) -> datetime | None:
    """A time, or how long ago it was; without a zone it is in UTC."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return _ago(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _ago(text: str) -> datetime:
    try:
        return datetime.now(UTC) - parse_duration(text)
    except InvalidInput:
        raise InvalidInput(
            f"{text[:60]!r} is neither a time nor an age",
            hint="Write it as 2d, 12h, 90min, 2026-01-31 or 2026-01-31T12:00Z.",
        ) from None


# a command that answers a question has no need to tell how it went about it
ONE_SHOT_LOG_LEVEL = "warning"


@dataclass(slots=True)
class Flags:
    """What was given before the command; the settings once a command has asked for them."""

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
        """Whether tracebacks were asked for; must be known even when the settings are wrong."""
        if self.settings is not None:
            return self.settings.log_level.lower() == "debug"
        level = self.given.get("log_level") or os.environ.get("FORAGER_LOG_LEVEL", "")
        return str(level).lower() == "debug"


def flags_of(context: typer.Context) -> Flags:
    flags = context.find_object(Flags)
    assert flags is not None  # the root command makes one
    return flags
