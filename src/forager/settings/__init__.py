"""One settings object: flag over FORAGER_* environment over forager.toml over default."""

from forager.settings.engines import Dispatch, Search
from forager.settings.loading import ENV_OTHER, Origin, env_name, load_settings, origins
from forager.settings.model import ENV_PREFIX, LogFormat, Settings, config_file

__all__ = [
    "ENV_OTHER",
    "ENV_PREFIX",
    "Dispatch",
    "LogFormat",
    "Origin",
    "Search",
    "Settings",
    "config_file",
    "env_name",
    "load_settings",
    "origins",
]
