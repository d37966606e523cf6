"""Kills its parent if that still runs some seconds after a stop signal.

A separate process, because a C call in the parent may hold the interpreter, and then no thread
of the parent runs. It imports nothing of Forager, so it takes 3 MB of memory and no time.
"""

from __future__ import annotations

import os
import select
import signal
import sys


def kill_if_late(parent: int, signals: int, grace: float) -> None:
    """Wait for a stop signal or for the end of the parent, which holds our standard input.

    A signal is a byte in the pipe `signals`, or on standard input if the parent has read it.
    """
    waiting = select.poll()
    waiting.register(signals, select.POLLIN)
    waiting.register(sys.stdin, select.POLLIN)
    if not any(event & select.POLLIN for _, event in waiting.poll()):
        return
    end_of_parent = select.poll()
    end_of_parent.register(sys.stdin, 0)
    if not end_of_parent.poll(1000 * grace) and os.getppid() == parent:
        os.kill(parent, signal.SIGKILL)
        print(
            f"forager: process {parent} was killed: it did not stop within {grace:g} s "
            "(shutdown_grace)",
            file=sys.stderr,
        )


if __name__ == "__main__":
    kill_if_late(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
