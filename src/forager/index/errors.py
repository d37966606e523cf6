"""What a search engine can do to those who ask it."""

from __future__ import annotations

from forager.errors import ForagerError


class EngineUnavailable(ForagerError):
    """The search engine does not answer."""


class IndexMissing(EngineUnavailable):
    """The search engine does not have this index."""


class EngineRefused(EngineUnavailable):
    """The search engine does not understand what it is asked."""


class EngineBusy(EngineUnavailable):
    """The search engine has too much to do, or too little memory for it."""
