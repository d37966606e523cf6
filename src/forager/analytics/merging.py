"""Small files of one month become one: frequent syncs must not make reading slow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

from forager.analytics.dataset import DATASETS
from forager.analytics.files import read_file, write_file
from forager.analytics.manifest import LakeFile, Manifest

# of one month; with more, all of them are merged that are not large already
MOST_FILES = 24
LARGE_ROWS = 1_000_000
# longer than any question may take
KEPT = timedelta(hours=1)


def crowded(manifest: Manifest) -> Iterator[tuple[LakeFile, ...]]:
    """Files that should become one."""

    def month_of(file: LakeFile) -> tuple[str, str]:
        return file.dataset, file.month

    for _, group in groupby(sorted(manifest.files, key=month_of), month_of):
        small = [file for file in group if file.rows < LARGE_ROWS]
        if len(small) > MOST_FILES:
            yield from _runs(small)


def _runs(small: list[LakeFile]) -> Iterator[tuple[LakeFile, ...]]:
    """One after the other, as they came, until they are a large one together."""
    run: list[LakeFile] = []
    for file in small:
        run.append(file)
        if sum(each.rows for each in run) >= LARGE_ROWS:
            yield tuple(run)
            run = []
    if len(run) > 1:
        yield tuple(run)


def merged(
    folder: Path, manifest: Manifest, files: tuple[LakeFile, ...], now: datetime
) -> Manifest:
    """The manifest with one file in place of several; those stay until nobody reads them."""
    dataset = next(each for each in DATASETS if each.name == files[0].dataset)
    tables = (table for file in files for table in read_file(dataset, folder / file.path))
    whole = write_file(folder, dataset, files[0].month, manifest.next_file, tables)
    whole = replace(whole, parts=tuple(file.path for file in files))
    rest = tuple(file for file in manifest.files if file not in files)
    return replace(
        manifest,
        files=(*rest, whole),
        next_file=manifest.next_file + 1,
        superseded=manifest.superseded | {file.path: now for file in files},
    )


def forgotten(manifest: Manifest, now: datetime) -> Manifest:
    """The manifest without files that were merged long ago, which are strays from then on."""
    kept = {path: since for path, since in manifest.superseded.items() if since > now - KEPT}
    return replace(manifest, superseded=kept)
