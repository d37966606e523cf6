"""Structured logs on standard error: readable on a terminal, JSON lines otherwise."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import structlog

from forager.settings import LogFormat


def configure_logs(level: str, log_format: LogFormat = LogFormat.AUTO) -> None:
    """Send this process's logs to standard error. Data belongs on standard output."""
    on_terminal = sys.stderr.isatty()
    pretty = on_terminal if log_format is LogFormat.AUTO else log_format is LogFormat.CONSOLE
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_rendering(pretty, colors=on_terminal and not os.environ.get("NO_COLOR")),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        # the stream is looked up per line, so that a captured or replaced stderr is honoured
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _rendering(pretty: bool, *, colors: bool) -> list[Any]:
    if pretty:
        return [structlog.dev.ConsoleRenderer(colors=colors)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger whose lines carry the part of Forager they come from."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(part=name)
    return logger
