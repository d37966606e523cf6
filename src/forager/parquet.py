"""What every Parquet file needs: the library, if it is there, and a file that counts."""

from __future__ import annotations

from importlib import import_module
from typing import Any, BinaryIO

from forager.errors import InvalidInput


class CountingFile:
    """A file that knows how much was written to it: a pipe does not, and Parquet asks."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written = 0

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.flush()


def load_pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise InvalidInput(
            "Parquet files need pyarrow, which is not installed",
            hint="Install it with: pip install 'forager-crawler[parquet]'",
        ) from None
