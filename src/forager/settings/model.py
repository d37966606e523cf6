"""The one object: all sections, what must fit together, and where values come from."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, SecretStr, model_validator

from forager.settings.crawling import ArchiveSettings, CrawlSettings
from forager.settings.engines import EngineSettings
from forager.settings.ground import GroundSettings
from forager.settings.products import ProductSettings
from forager.settings.rendering import RenderSettings
from forager.settings.serving import ServingSettings
from forager.settings.workers import WorkerSettings

ENV_PREFIX = "FORAGER_"

# Pairs that only work in this order, with what goes wrong otherwise.
LESS = (
    ("heartbeat_interval", "lease_limit", "a runner would stop before its lease could be renewed"),
    ("stall_limit", "lease_limit", "a frozen runner must be found before it ends itself"),
    ("lease_limit", "stale_after", "a job could be given away while its runner still writes"),
)
AT_MOST = (
    ("poll_interval", "heartbeat_interval", "a worker beats only when it looks for jobs"),
    ("heartbeat_interval", "watchdog_interval", "the living need time to beat between two looks"),
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
    CrawlSettings,
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
        for smaller, larger, reason in LESS:
            if not getattr(self, smaller) < getattr(self, larger):
                raise ValueError(self._disorder(smaller, "less than", larger, reason))
        for smaller, larger, reason in AT_MOST:
            if not getattr(self, smaller) <= getattr(self, larger):
                raise ValueError(self._disorder(smaller, "at most", larger, reason))
        return self

    def _disorder(self, smaller: str, relation: str, larger: str, reason: str) -> str:
        low, high = getattr(self, smaller), getattr(self, larger)
        return f"{smaller} ({low:g} s) must be {relation} {larger} ({high:g} s): {reason}"


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
