"""How Forager names itself to servers."""

from __future__ import annotations

from forager import __version__
from forager.settings import Settings


def agent_header(settings: Settings, given: str | None = None) -> str:
    """The User-Agent header: what was given for this once, or what is set."""
    return (given or settings.user_agent).replace("{version}", __version__)
