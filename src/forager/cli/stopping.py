"""Signals: the first asks for a graceful stop, a second Ctrl-C stops at once."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from forager.cli.failures import INTERRUPTED, TERMINATED
from forager.errors import ForagerError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoppedAtOnce(ForagerError):
    """Stopped at once. Jobs that ran are given to another worker by the watchdog."""

    exit_code = INTERRUPTED


def leave_on_sigterm() -> None:
    """Leave as if by sys.exit: the last one out must still stop the embedded server."""

    def leave(_number: int, _frame: object) -> None:
        sys.exit(TERMINATED)

    signal.signal(signal.SIGTERM, leave)


async def run_until_stopped(work: Coroutine[Any, Any, None], stop: Callable[[], None]) -> None:
    """Run; the first signal calls `stop`, after which `work` is expected to end by itself."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal(number: signal.Signals) -> None:
        nonlocal asked
        if not asked:
            asked = True
            stop()
        elif number is signal.SIGINT:
            task.cancel()

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            loop.add_signal_handler(number, on_signal, number)
    try:
        await task
    except asyncio.CancelledError:
        raise StoppedAtOnce from None
