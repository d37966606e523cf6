"""The lake's folder: its lock, its files and its manifest."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import orjson
from pydantic import TypeAdapter

from forager.archive.local import sync_folder, whole_file
from forager.errors import ForagerError, NotAllowed
from forager.settings import Settings

FOLDER = "lake"
SUFFIX = ".parquet"


def lake_folder(settings: Settings) -> Path:
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


def place_for(folder: Path, dataset: str, month: str, number: int) -> Path:
    """The path of a file; its folder is created and synced."""
    place = folder / dataset / f"month={month}"
    if not place.is_dir():
        place.mkdir(parents=True)
        for parent in (place.parent, folder, folder.parent):
            sync_folder(parent)
    return place / f"{number:08}{SUFFIX}"


def remove_strays(folder: Path, manifest: Manifest) -> None:
    """Delete files that the manifest does not name: a killed sync wrote them."""
    known = {file.path for file in manifest.files} | manifest.superseded.keys()
    for pattern in (f"*/month=*/*{SUFFIX}", "*/month=*/.*.part"):
        for path in folder.glob(pattern):
            if str(path.relative_to(folder)) not in known:
                path.unlink(missing_ok=True)


NAME = "manifest.json"
FORMAT = 1
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One Parquet file; `path` is below the lake's folder."""

    dataset: str
    month: str
    path: str
    rows: int
    size: int
    # the files it was merged from, if it was
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """The last row of a dataset that is in the lake."""

    at: datetime = BEGINNING
    id: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """How far the pages of site crawls were read.

    All pages before `since` are copied, and of those until `until` the pages of jobs before `job`
    and its pages up to `key`. Without `until`, no pass is active.
    """

    since: datetime = BEGINNING
    until: datetime | None = None
    job: str = str(UUID(int=0))
    key: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Replacing it is the commit: a file it does not name is no part of the lake."""

    database: str
    # every file gets a new number
    next_file: int = 1
    positions: dict[str, Position] = field(default_factory=dict)
    files: tuple[LakeFile, ...] = ()
    # merged into others, and kept for a while for running queries
    superseded: dict[str, datetime] = field(default_factory=dict)
    complete_until: datetime | None = None
    site: Pass = Pass()
    # distinguishes this lake from another one of the same database
    lake: str = field(default_factory=lambda: uuid4().hex)

    def of(self, dataset: str) -> tuple[LakeFile, ...]:
        return tuple(file for file in self.files if file.dataset == dataset)

    def position(self, dataset: str) -> Position:
        return self.positions.get(dataset, Position())


def read_manifest(folder: Path) -> Manifest | None:
    """The lake's manifest; None where there is no lake yet."""
    path = folder / NAME
    try:
        data = orjson.loads(path.read_bytes())
        if data.pop("format") != FORMAT:
            raise ValueError("another version of Forager wrote it")
        return TypeAdapter(Manifest).validate_python(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ForagerError(
            f"{path} cannot be read: {error}",
            hint="Move the folder away; the next sync makes a new one.",
        ) from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    with whole_file(folder / NAME, overwrite=True) as file:
        file.write(orjson.dumps({"format": FORMAT, **asdict(manifest)}, option=orjson.OPT_INDENT_2))
