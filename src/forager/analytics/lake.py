"""The lake: one Parquet file for each dataset and month, in a folder with a lock."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from forager.archive.local import whole_file
from forager.errors import ForagerError, NotAllowed, error_text
from forager.settings import Settings

FOLDER = "lake"
STATE = "state.json"


def lake_folder(settings: Settings) -> Path:
    """Where the Parquet files of the data sets are."""
    return settings.home / FOLDER


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Lock the lake for one process; the lock ends with the process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("w")
    except OSError as error:
        raise ForagerError(f"{folder} cannot be used: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotAllowed(
                "another sync writes to the lake", hint="Wait until it is done."
            ) from None
        yield


@dataclass(frozen=True, slots=True)
class LakeState:
    """The database that the lake was copied from, and the time of the last complete sync."""

    database: str
    complete_until: datetime


def read_state(folder: Path) -> LakeState | None:
    """The state of the lake; None before the first complete sync."""
    path = folder / STATE
    try:
        return TypeAdapter(LakeState).validate_python(orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ForagerError(
            f"{path} cannot be read: {error_text(error)}",
            hint="Delete the file; the next sync copies everything again.",
        ) from None


def write_state(folder: Path, state: LakeState) -> None:
    with whole_file(folder / STATE, overwrite=True) as file:
        file.write(orjson.dumps(asdict(state)))
