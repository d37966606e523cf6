"""Structured logs on standard error: readable on a terminal, JSON lines otherwise."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

# structlog imports Rich to draw tracebacks, which takes longer than all other imports together
_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]
try:
    import structlog
finally:
    del sys.modules["rich"]
    if _rich is not None:
        sys.modules["rich"] = _rich

from forager.errors import without_object_addresses  # noqa: E402 - behind the block above
from forager.settings import LogFormat  # noqa: E402
from forager.terminal import clean  # noqa: E402

_announces = False


def configure_logs(
    level: str, log_format: LogFormat | str = LogFormat.AUTO, *, announces: bool = False
) -> None:
    """Send this process's logs to standard error. Data belongs on standard output.

    With `announces`, messages of `announce` are shown on a terminal at every log level.
    """
    global _announces
    log_format = LogFormat(log_format)
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    pretty = on_terminal if log_format is LogFormat.AUTO else log_format is LogFormat.CONSOLE
    number = logging.getLevelNamesMapping()[level.upper()]
    _announces = announces and on_terminal and number > logging.INFO
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _as_text,
            _keep_line,
            *_rendering(pretty, colors=on_terminal and not os.environ.get("NO_COLOR")),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: _StandardError(),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger whose lines carry the part of Forager they come from."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(part=name)
    return logger


def announce(logger: structlog.stdlib.BoundLogger, message: str, **facts: object) -> None:
    """Log why a command waits; on a terminal also where the log level hides it."""
    logger.info(message, **facts)
    if _announces:
        details = ", ".join(f"{name} {value}" for name, value in facts.items() if value != "")
        _StandardError().msg(clean(f"{message} ({details})" if details else message))


class _StandardError:
    """Writes lines to the current standard error; write errors are ignored."""

    def msg(self, message: str) -> None:
        if sys.stderr is None:
            return
        try:
            sys.stderr.write(message + "\n")
            sys.stderr.flush()
        except BrokenPipeError:
            _silence_stderr()
        except (OSError, ValueError):  # closed or full
            return

    debug = info = warning = warn = error = critical = fatal = exception = log = msg


def _silence_stderr() -> None:
    """Discard output without a reader; a rest in the buffer would change the exit code."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def _rendering(pretty: bool, *, colors: bool) -> list[Any]:
    if not pretty:
        return [
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    return [
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        _without_control_characters,
        structlog.dev.ConsoleRenderer(
            colors=colors, pad_event_to=0, exception_formatter=_clean_traceback
        ),
    ]


_PLAIN_TYPES = (str, int, float, list, tuple, dict, type(None))


def _as_text(
    _logger: object, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Values such as hints as their text, and texts without addresses of Python objects."""
    for key, value in line.items():
        if key == "exc_info":
            continue
        text = value if isinstance(value, _PLAIN_TYPES) else str(value)
        line[key] = without_object_addresses(text) if isinstance(text, str) else text
    return line


# --- the last lines of a job -------------------------------------------------------------------

KEPT_LINES = 12
MAX_LINE = 300
_kept: dict[str, deque[dict[str, str]]] = {}
# no facts of their own: they are shown beside the line, or are the same in each of them
_FRAME = frozenset({"event", "level", "part", "job", "exc_info"})


@contextlib.contextmanager
def kept_lines(job: str) -> Iterator[None]:
    """Keep the last lines that are bound to a job, as long as the block runs."""
    _kept[job] = deque(maxlen=KEPT_LINES)
    try:
        yield
    finally:
        _kept.pop(job, None)


def last_lines(job: str) -> list[dict[str, str]]:
    """The last lines of a job of this process, each with `at`, `level` and `text`."""
    return list(_kept.get(job, ()))


def _keep_line(
    _logger: object, method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    lines = _kept.get(str(line.get("job")))
    if lines is not None:
        facts = ", ".join(f"{name} {line[name]}" for name in line if name not in _FRAME)
        text = clean(f"{line['event']} ({facts})" if facts else str(line["event"]))
        # they are stored in the database, which refuses lone surrogates
        text = text.encode("utf-8", "replace").decode()
        at = datetime.now(UTC).isoformat(timespec="seconds")
        lines.append({"at": at, "level": method, "text": text[:MAX_LINE]})
    return line


def _without_control_characters(
    _logger: object, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for key, value in line.items():
        if isinstance(value, str):
            line[key] = clean(value)
    return line


def _clean_traceback(out: TextIO, error: structlog.typing.ExcInfo) -> None:
    """A plain one: the richer formatter prints local variables, and secrets with them."""
    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, error)
    out.write(clean(plain.getvalue()))


# kinds of messages that a throttle knows apart
MAX_KINDS = 1000


class Throttle:
    """Passes the first message of a kind, and then one per interval."""

    def __init__(self, every: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._last: dict[str, tuple[float, int]] = {}

    def passes(self, key: str) -> int | None:
        """How many were held back since the last one, or None to hold back this one as well."""
        now = self._clock()
        at, held_back = self._last.get(key, (None, 0))
        if at is not None and now - at < self._every:
            self._last[key] = (at, held_back + 1)
            return None
        if len(self._last) >= MAX_KINDS:
            self._last.clear()
        self._last[key] = (now, 0)
        return held_back


class ThrottledHandler(logging.Handler):
    """Takes warnings of a library; `write` gets those that pass, and how many were held back."""

    def __init__(
        self,
        write: Callable[[logging.LogRecord, int], None],
        *,
        kind: Callable[[logging.LogRecord], str],
        every: float = 30.0,
    ) -> None:
        super().__init__(logging.WARNING)
        self._write = write
        self._kind = kind
        self._throttle = Throttle(every)

    def emit(self, record: logging.LogRecord) -> None:
        held_back = self._throttle.passes(self._kind(record))
        if held_back is not None:
            self._write(record, held_back)
