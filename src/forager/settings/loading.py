"""Reading the settings, and saying which one is wrong, where, and what was probably meant."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import SecretStr, ValidationError

from forager.errors import InvalidInput, error_text
from forager.settings.model import ENV_PREFIX, Settings, config_file, read_config_file
from forager.settings.values import masked_secret, masked_url
from forager.validation import message_of, sentence

# names with the prefix that are not settings: where the file is, and what only the tests read
ENV_OTHER = {"FORAGER_CONFIG"}
ENV_TEST_PREFIX = "FORAGER_TEST_"


class Origin(StrEnum):
    """Where a setting's value came from."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


def load_settings(**overrides: Any) -> Settings:
    """Read the settings, or say which key is wrong, where, and what was probably meant."""
    in_file = _read_config_file()
    _check_environment()
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise InvalidInput(
            _explain(error, _origins(given, in_file)),
            hint="`docs/reference/settings.md` lists every setting.",
        ) from None


def origins(flags: Collection[str] = ()) -> dict[str, Origin]:
    """Where each setting's value comes from, given the names of those set by flags."""
    return _origins(flags, _read_config_file())


def env_name(setting: str) -> str:
    return ENV_PREFIX + setting.upper()


def _origins(flags: Collection[str], in_file: Collection[str]) -> dict[str, Origin]:
    environment = {name.upper() for name, value in os.environ.items() if value}

    def origin(name: str) -> Origin:
        if name in flags:
            return Origin.FLAG
        if env_name(name) in environment:
            return Origin.ENVIRONMENT
        return Origin.FILE if name in in_file else Origin.DEFAULT

    return {name: origin(name) for name in Settings.model_fields}


def _read_config_file() -> dict[str, Any]:
    path = config_file()
    if os.environ.get("FORAGER_CONFIG") and not path.exists():
        raise InvalidInput(
            f"the configuration file {path} does not exist",
            hint="It is named by --config or FORAGER_CONFIG.",
        )
    try:
        return read_config_file()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error_text(error)}") from None


def _check_environment() -> None:
    known = {env_name(name) for name in Settings.model_fields} | ENV_OTHER
    for name in sorted(os.environ):
        if name.startswith(ENV_PREFIX) and name not in known:
            if name.startswith(ENV_TEST_PREFIX):
                continue
            raise InvalidInput(f"{name} is set, but is not a setting{_closest(name, known)}")


def _explain(error: ValidationError, origin: dict[str, Origin]) -> str:
    lines = []
    for problem in error.errors():
        key = str(problem["loc"][0]) if problem["loc"] else ""
        message = message_of(problem)
        if problem["type"] == "extra_forbidden":
            near = _closest(key, Settings.model_fields)
            lines.append(f"unknown setting {key!r} in {config_file()}{near}")
        elif key in Settings.model_fields:
            got = "" if _is_secret(key) else f" (got {_masked(key, problem['input'])!r})"
            name = f"setting {_as_written(key, origin[key])}"
            lines.append(f"{sentence(name, message)}{got}")
        else:
            lines.append(f"settings do not fit together: {message}")
    return "\n".join(lines)


def _as_written(name: str, origin: Origin) -> str:
    """A setting's name where it was set, so that the reader knows what to change."""
    if origin is Origin.FLAG:
        return f"--{name.replace('_', '-')}"
    return env_name(name) if origin is Origin.ENVIRONMENT else f"{name!r} in {config_file()}"


def _is_secret(name: str) -> bool:
    return "SecretStr" in str(Settings.model_fields[name].annotation)


def _closest(name: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {match[0]}?)" if match else ""


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
            value=_masked(name, getattr(settings, name)),
            origin=origin[name].value,
            environment=env_name(name),
            description=field.description or "",
        )
        for name, field in type(settings).model_fields.items()
    ]


def setting_text(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _flags(settings: Settings) -> set[str]:
    plain = load_settings()
    names = type(settings).model_fields
    return {name for name in names if getattr(settings, name) != getattr(plain, name)}


def _masked(name: str, value: Any) -> Any:
    """The value without its secret; what is not secret of a URL stays readable."""
    if isinstance(value, SecretStr):
        return masked_secret(value.get_secret_value(), is_url=name.endswith("_url"))
    if isinstance(value, tuple):
        return tuple(_masked(name, each) for each in value)
    return masked_url(value) if isinstance(value, str) and "://" in value else value
