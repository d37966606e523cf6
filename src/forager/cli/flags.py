"""The options that hold for every command, and the settings that come of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from forager.settings import Settings

# a command that answers a question has no need to tell how it went about it
ONE_SHOT_LOG_LEVEL = "warning"


@dataclass(slots=True)
class Flags:
    """What was given before the command; the settings once a command has asked for them."""

    given: dict[str, Any] = field(default_factory=dict)
    settings: Settings | None = None

    def load(self, *, quiet: bool = True, **more: Any) -> Settings:
        """Read the settings and set up logs; `quiet` commands log warnings only, unless told."""
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
