"""Patch the modules of every process of the cluster as they are imported.

Python imports `sitecustomize` at startup, and all processes that Forager starts inherit the path to
ours. A patch therefore reaches supervisors, runners and their children, and costs nothing where a
module is not imported.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

from chaos import (
    broken,
    clock,
    control,
    disk,
    engine_starts,
    leases,
    lost_answers,
    run_processes,
    short_limits,
)

Patch = Callable[[ModuleType], None]

# if `sitecustomize` fails, Python only prints the error and continues: end the process instead
SITECUSTOMIZE = f"""\
import os

try:
    if {control.FOLDER!r} in os.environ:  # sandboxed processes are left as they are
        from chaos import bootstrap

        bootstrap.install()
except BaseException:
    import traceback

    traceback.print_exc()
    os._exit(70)
"""


def write_sitecustomize(folder: Path) -> None:
    """Write `sitecustomize.py` to a folder of `PYTHONPATH`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)


def install() -> None:
    """Patch this process, if it belongs to a chaos run."""
    active = control.from_environment()
    if active is None:
        return
    run_processes.die_with_parent()
    clock.install(active)
    patches: dict[str, list[Patch]] = defaultdict(list)
    everything = (
        short_limits.patches(),
        lost_answers.patches(active),
        disk.patches(active),
        clock.patches(),
        broken.patches(os.environ.get(control.BREAK, "")),
        # after the switches, one of which replaces the lease check
        leases.patches(),
        engine_starts.patches(active),
    )
    for some in everything:
        for module, patch in some.items():
            patches[module].append(patch)
    too_late = sorted(patches.keys() & sys.modules.keys())
    assert not too_late, f"imported before they could be patched: {too_late}"
    sys.meta_path.insert(0, _Finder(patches))


class _Finder(MetaPathFinder):
    """Finds modules in the usual way, and patches them after their import."""

    def __init__(self, patches: dict[str, list[Patch]]) -> None:
        self._patches = patches

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._patches:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            _change_after_import(spec.loader, self._patches[name])
        return spec


def _change_after_import(loader: object, patches: Sequence[Patch]) -> None:
    import_module = loader.exec_module  # type: ignore[attr-defined]

    def exec_module(module: ModuleType) -> None:
        import_module(module)
        for patch in patches:
            patch(module)

    loader.exec_module = exec_module  # type: ignore[attr-defined]
