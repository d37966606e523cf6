"""The lake's files as tables of ClickHouse's SQL."""

from __future__ import annotations

from forager.analytics.dataset import DATASETS, Dataset, column_types
from forager.analytics.manifest import Manifest


def sources_of(manifest: Manifest) -> dict[str, str]:
    """Of each dataset, what stands behind FROM; only files that the manifest names are read."""
    return {each.name: _source(each, manifest) for each in DATASETS}


def _source(dataset: Dataset, manifest: Manifest) -> str:
    rows = _files(dataset, [file.path for file in manifest.of(dataset.name)])
    if not dataset.has_versions:
        return rows
    return f"(SELECT * FROM {rows} ORDER BY at DESC LIMIT 1 BY id)"


def _files(dataset: Dataset, paths: list[str]) -> str:
    structure = _quoted(", ".join(f"{name} {kind}" for name, kind in column_types(dataset).items()))
    if not paths:
        return f"null({structure})"
    # names of our own making, below the folder that the engine works in: nothing to escape
    names = paths[0] if len(paths) == 1 else "{" + ",".join(paths) + "}"
    return f"file('{names}', Parquet, {structure})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"
