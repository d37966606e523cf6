"""A full disk under the archive: writes stop after some bytes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import ModuleType

from chaos.control import Control


def patches(control: Control) -> dict[str, Callable[[ModuleType], None]]:
    def change(module: ModuleType) -> None:
        write_all = module._write_all

        def write_some(fd: int, offset: int, data: bytes) -> None:
            if control.disk_is_full:
                write_all(fd, offset, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write_all(fd, offset, data)

        module._write_all = write_some  # type: ignore[attr-defined]

    return {"forager.archive.local": change}
