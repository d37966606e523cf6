"""Standard output is for answers: of a sandboxed process, of a command. Plug-ins print aside."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TextIO


class PrintsAside:
    """While anybody is inside, prints go to standard error; threads may come and go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._stdout: TextIO | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._stdout, sys.stdout = sys.stdout, sys.stderr
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._stdout is not None:
                sys.stdout, self._stdout = self._stdout, None


prints_aside = PrintsAside()
