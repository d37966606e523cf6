"""Settings as people see them: each value with its origin, secrets masked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from forager.settings.loading import env_name, load_settings, origins
from forager.settings.model import Settings
from forager.settings.values import masked_url


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting as it is in force."""

    name: str
    value: Any
    origin: str
    environment: str
    description: str


def shown_settings(settings: Settings, flags: Collection[str] | None = None) -> list[ShownSetting]:
    """Every setting; without the names of flags, those that differ from file and environment."""
    origin = origins(_flags(settings) if flags is None else flags)
    return [
        ShownSetting(
            name=name,
            value=_masked(getattr(settings, name)),
            origin=origin[name].value,
            environment=env_name(name),
            description=field.description or "",
        )
        for name, field in type(settings).model_fields.items()
    ]


def setting_words(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _flags(settings: Settings) -> set[str]:
    plain = load_settings()
    names = type(settings).model_fields
    return {name for name in names if getattr(settings, name) != getattr(plain, name)}


def _masked(value: Any) -> Any:
    """The value without its secret; what is not secret of a URL stays readable."""
    if isinstance(value, SecretStr):
        return masked_url(value.get_secret_value())
    return masked_url(value) if isinstance(value, str) and "://" in value else value
