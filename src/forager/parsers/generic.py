"""The generic extraction as a parser: what reads every page that no site parser fits."""

from __future__ import annotations

NAME = "generic"
# goes up whenever the same page may be read differently than before
VERSION = "1"
