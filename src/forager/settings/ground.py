"""Where everything is kept, and what is said about it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import platformdirs
from pydantic import BaseModel, Field, SecretStr, field_validator

DATABASE_SCHEMES = ("postgresql://", "postgres://")


class LogFormat(StrEnum):
    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class GroundSettings(BaseModel):
    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("forager", appauthor=False),
        description="Folder for the embedded database, the archive and secrets.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL 15 or newer to use instead of the embedded server.",
    )
    database_pool_url: SecretStr | None = Field(
        default=None,
        description="PgBouncer in transaction mode before that PostgreSQL; statements that need a"
        " session still use FORAGER_DATABASE_URL.",
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
        pattern="(?i)^(debug|info|warning|error|critical)$",
        description="Least severe log line that is shown.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="`console`, `json`, or `auto`: console on a terminal, JSON otherwise.",
    )

    @field_validator("home", mode="after")
    @classmethod
    def _absolute(cls, home: Path) -> Path:
        """Whatever was written, one spelling: processes meet in this folder by its name."""
        if home == Path():
            raise ValueError("the home folder must be named; use an absolute path")
        try:
            return home.expanduser().resolve()
        except (RuntimeError, OSError) as error:
            raise ValueError(
                f"this folder cannot be found: {error}; use an absolute path"
            ) from None

    @field_validator("database_url", "database_pool_url", mode="after")
    @classmethod
    def _postgresql_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(DATABASE_SCHEMES):
            raise ValueError("expected postgresql://user:password@host:5432/database")
        return url
