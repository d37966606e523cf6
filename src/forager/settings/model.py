"""The settings model: all sections, the rules between them, and the place of the data."""

from __future__ import annotations

import os
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from forager.errors import error_text
from forager.settings.crawling import ArchiveSettings, CrawlingSettings, RenderSettings
from forager.settings.engines import EngineSettings
from forager.settings.products import ProductSettings
from forager.settings.workers import ServingSettings, WorkerSettings
from forager.validation import matches

DATABASE_SCHEMES = ("postgresql://", "postgres://")


class LogFormat(StrEnum):
    """The format of log lines."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class GroundSettings(BaseModel):
    """Settings that every command needs."""

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("forager", appauthor=False),
        description="Folder for the embedded database, the archive and secrets.",
    )
    database_url: SecretStr | None = Field(
        default=None, description="PostgreSQL 15 or newer to use instead of the embedded server."
    )
    database_pool_url: SecretStr | None = Field(
        default=None,
        description="PgBouncer in transaction mode in front of that PostgreSQL; statements that"
        " need a session still use FORAGER_DATABASE_URL.",
    )
    database_linger_seconds: float = Field(
        default=300.0,
        ge=0,
        le=86_400,
        description="How long the embedded server keeps running after the last command, because"
        " starting it takes a second; `forager db stop` stops it. 0 stops it at once.",
    )
    log_level: str = Field(
        default="info",
        pattern=matches(
            "(?i)^(debug|info|warning|error|critical)$", "debug, info, warning, error or critical"
        ),
        description="Minimum level of log lines.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="`console`, `json`, or `auto`: console on a terminal, JSON otherwise.",
    )

    @field_validator("home", mode="after")
    @classmethod
    def _absolute(cls, home: Path) -> Path:
        """Normalize the path: processes find each other by the name of this folder."""
        if home == Path():
            raise ValueError("the home folder must be named; use an absolute path")
        try:
            return home.expanduser().resolve()
        except (RuntimeError, OSError) as error:
            raise ValueError(
                f"this folder cannot be found: {error_text(error)}; use an absolute path"
            ) from None

    @field_validator("database_url", "database_pool_url", mode="after")
    @classmethod
    def _postgresql_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(DATABASE_SCHEMES):
            raise ValueError("expected postgresql://user:password@host:5432/database")
        return url


ENV_PREFIX = "FORAGER_"

# Pairs that only work in this order, with what goes wrong otherwise.
LESS = (
    ("heartbeat_interval", "lease_limit", "a runner would stop before its lease could be renewed"),
    ("stall_limit", "lease_limit", "a frozen runner must be found before it ends itself"),
    ("lease_limit", "stale_after", "a job could be given away while its runner still writes"),
)
AT_MOST = (
    ("poll_interval", "heartbeat_interval", "a worker beats only when it looks for jobs"),
    ("heartbeat_interval", "watchdog_interval", "a heartbeat must come between two checks"),
    ("stall_limit", "progress_limit", "a runner that is frozen makes no progress either"),
    ("retry_delay", "retry_delay_max", "the first wait cannot be longer than the longest"),
    ("task_retry_delay", "task_retry_delay_max", "the first wait cannot exceed the longest"),
    ("adaptive_min", "adaptive_max", "the shortest interval cannot exceed the longest"),
)


class Settings(
    # the first one's fields come last
    ServingSettings,
    ArchiveSettings,
    EngineSettings,
    ProductSettings,
    RenderSettings,
    CrawlingSettings,
    WorkerSettings,
    GroundSettings,
):
    """Everything that can be set. Times are seconds unless the name says otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    def __init__(self, **given: Any) -> None:
        """Arguments come first, then the environment, then the configuration file."""
        super().__init__(**{**read_config_file(), **self._environment(), **given})

    @classmethod
    def _environment(cls) -> dict[str, str]:
        # an empty variable is how many tools say "not set"
        found = {name.upper(): value for name, value in os.environ.items() if value}
        names = {name: f"{ENV_PREFIX}{name.upper()}" for name in cls.model_fields}
        return {name: found[variable] for name, variable in names.items() if variable in found}

    def for_child_process(self) -> dict[str, Any]:
        """All values with secrets in clear text, for a socket that only one child process reads.

        Without `database_url`: children use the database that this process has found or started.
        """
        values = self.model_dump(mode="json", exclude={"database_url"})
        for name in values:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                values[name] = value.get_secret_value()
        return values

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for smaller, larger, reason in (*LESS, *AT_MOST):
            low, high = getattr(self, smaller), getattr(self, larger)
            is_strict = (smaller, larger, reason) in LESS
            if low > high or (is_strict and low == high):
                relation = "less than" if is_strict else "at most"
                raise ValueError(
                    f"{smaller} ({low:g} s) must be {relation} {larger} ({high:g} s): {reason}"
                )
        return self


def config_file() -> Path:
    """The file settings are read from; it need not exist unless FORAGER_CONFIG names it."""
    return Path(os.environ.get("FORAGER_CONFIG") or "forager.toml")


def read_config_file() -> dict[str, Any]:
    """The settings in the file; none if there is no file."""
    try:
        found = tomllib.loads(config_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    found.pop("sources", None)  # read by `forager sources apply`
    return found
