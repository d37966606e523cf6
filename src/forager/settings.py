"""One settings object: flag over FORAGER_* environment over forager.toml over default."""

from __future__ import annotations

import difflib
import os
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from forager.errors import InvalidInput

ENV_PREFIX = "FORAGER_"
# names with the prefix that are not settings: where the file is, and what only the tests read
ENV_OTHER = {"FORAGER_CONFIG"}
ENV_TEST_PREFIX = "FORAGER_TEST_"


class LogFormat(StrEnum):
    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class Settings(BaseSettings):
    """Everything that can be set. Times are seconds unless the name says otherwise."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, extra="forbid", frozen=True, validate_default=True
    )

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("forager", appauthor=False),
        description="Folder for the embedded database, the archive and secrets.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL 15 or newer to use instead of the embedded server.",
    )
    log_level: str = Field(
        default="info",
        pattern="(?i)^(debug|info|warning|error|critical)$",
        description="Least severe log line that is shown.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="`console`, `json`, or `auto`: console on a terminal, JSON otherwise.",
    )

    # --- workers ---------------------------------------------------------------------------
    worker_capacity: int = Field(
        default=2, ge=1, le=1000, description="Jobs one worker runs at the same time."
    )
    poll_interval: float = Field(
        default=1.0, gt=0, description="How often a worker looks for jobs when nothing wakes it."
    )
    heartbeat_interval: float = Field(
        default=10.0, gt=0, description="How often a worker renews the leases of its jobs."
    )
    lease_limit: float = Field(
        default=90.0,
        gt=0,
        description="A runner whose lease was not renewed for this long stops itself.",
    )
    stall_limit: float = Field(
        default=60.0,
        gt=0,
        description="A runner without a sign of life for this long is frozen, and killed.",
    )
    progress_limit: float = Field(
        default=900.0,
        gt=0,
        description="A runner that lives but commits nothing for this long is stuck, and killed.",
    )
    job_modules: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Python modules, separated by commas, that register job kinds of your own.",
    )
    job_time_limit: float | None = Field(
        default=None, gt=0, description="Longest time one run of a job may take; none by default."
    )
    job_memory_limit_mb: int = Field(
        default=2048, ge=64, description="Memory a runner and its children may use together."
    )
    shutdown_grace: float = Field(
        default=20.0, ge=0, description="Time runners get to commit and leave when a worker stops."
    )

    # --- recovery --------------------------------------------------------------------------
    watchdog_interval: float = Field(
        default=60.0, gt=0, description="How often a worker looks for jobs of dead workers."
    )
    stale_after: float = Field(
        default=120.0, gt=0, description="Age of a heartbeat after which its worker counts as dead."
    )
    max_retries: int = Field(
        default=3, ge=0, le=1000, description="Retries of a job after its first run."
    )
    retry_delay: float = Field(
        default=1.0, ge=0, description="Wait before the first retry; doubles with each one."
    )
    retry_delay_max: float = Field(default=600.0, ge=0, description="Longest wait before a retry.")
    prune_after_days: float = Field(
        default=30.0, gt=0, description="Finished jobs older than this are deleted."
    )

    @field_validator("job_modules", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - part of the signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - part of the signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = TomlConfigSettingsSource(settings_cls, toml_file=config_file())
        return init_settings, env_settings, file


def config_file() -> Path:
    """The file settings are read from; it need not exist unless FORAGER_CONFIG names it."""
    return Path(os.environ.get("FORAGER_CONFIG") or "forager.toml")


def load_settings(**overrides: Any) -> Settings:
    """Read the settings, or say which key is wrong, where, and what was probably meant."""
    _check_config_file()
    _check_environment()
    try:
        return Settings(**{k: v for k, v in overrides.items() if v is not None})
    except ValidationError as error:
        raise InvalidInput(
            _explain(error), hint="`forager config show` lists every setting."
        ) from None


def _check_config_file() -> None:
    path = config_file()
    if not path.exists():
        if "FORAGER_CONFIG" in os.environ:
            raise InvalidInput(f"FORAGER_CONFIG names {path}, which does not exist")
        return
    try:
        tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None


def _check_environment() -> None:
    known = {ENV_PREFIX + name.upper() for name in Settings.model_fields} | ENV_OTHER
    for name in sorted(os.environ):
        if name.startswith(ENV_PREFIX) and name not in known:
            if name.startswith(ENV_TEST_PREFIX):
                continue
            raise InvalidInput(f"{name} is set, but is not a setting{_closest(name, known)}")


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            near = _closest(key, Settings.model_fields)
            lines.append(f"unknown setting {key!r} in {config_file()}{near}")
        else:
            lines.append(f"setting {key!r}: {problem['msg']} (got {problem['input']!r})")
    return "\n".join(lines)


def _closest(name: str, known: Any) -> str:
    match = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {match[0]}?)" if match else ""
