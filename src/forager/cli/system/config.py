"""`forager config`: the settings, and where their values come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from forager.cli import output
from forager.cli.flags import flags_of
from forager.cli.options import AsJson

if TYPE_CHECKING:
    from forager.settings import Settings

app = typer.Typer(help="Look at the settings.", no_args_is_help=True)

ORIGIN_STYLES = {"flag": "cyan", "environment": "cyan", "file": "cyan", "default": "dim"}


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting as it is in force."""

    name: str
    value: Any
    origin: str
    environment: str
    description: str


@app.callback()
def config() -> None:
    """Look at the settings."""


@app.command()
def show(context: typer.Context, as_json: AsJson = False) -> None:
    """Show every setting, its value, and where it came from. Passwords are masked."""
    from forager.settings import config_file

    flags = flags_of(context)
    shown = shown_settings(flags.load(quiet=False), flags.given)
    file = config_file().absolute()
    if as_json:
        found = str(file) if file.exists() else None
        output.show_json({"items": shown, "next_cursor": None, "file": found})
        return
    output.show_table(
        {"SETTING": {}, "VALUE": {"overflow": "fold", "no_wrap": False}, "FROM": {}},
        [
            (item.name, _in_words(item.value), (item.origin, ORIGIN_STYLES[item.origin]))
            for item in shown
        ],
    )
    output.note(f"File: {file}" if file.exists() else f"File: {file} (not there)")


def shown_settings(settings: Settings, flags: dict[str, Any]) -> list[ShownSetting]:
    from forager.settings import env_name, origins

    origin = origins(flags)
    return [
        ShownSetting(
            name=name,
            value=masked(getattr(settings, name)),
            origin=origin[name].value,
            environment=env_name(name),
            description=field.description or "",
        )
        for name, field in type(settings).model_fields.items()
    ]


def masked(value: Any) -> Any:
    """The value without its secret; what is not secret of a URL stays readable."""
    from pydantic import SecretStr

    from forager.settings.values import masked_url

    if isinstance(value, SecretStr):
        return masked_url(value.get_secret_value())
    return masked_url(value) if isinstance(value, str) and "://" in value else value


def _in_words(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
