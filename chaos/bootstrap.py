"""What happens first in every process of the harness: its modules are changed as they are imported.

Python imports `sitecustomize` when it starts, and everything that Forager starts inherits the path
to ours. So a change reaches supervisors, runners and their children alike, and costs nothing where
a module is not used.
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

from chaos import broken, clock, control, disk, family, impatience, lies

Patch = Callable[[ModuleType], None]

# Python only mentions that its first module failed, and goes on without it: that must not be
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
    """Put the first module where `PYTHONPATH` will find it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)


def install() -> None:
    """Change this process, if a harness started it."""
    here = control.from_environment()
    if here is None:
        return
    family.die_with_parent()
    clock.install(here)
    patches: dict[str, list[Patch]] = defaultdict(list)
    everything = (
        impatience.patches(),
        lies.patches(here),
        disk.patches(here),
        clock.patches(),
        family.patches(),
        broken.patches(os.environ.get(control.BREAK, "")),
    )
    for some in everything:
        for module, patch in some.items():
            patches[module].append(patch)
    too_late = sorted(patches.keys() & sys.modules.keys())
    assert not too_late, f"imported before they could be changed: {too_late}"
    sys.meta_path.insert(0, _Finder(patches))


class _Finder(MetaPathFinder):
    """Finds the modules that are to be changed, as everybody else would, and changes them."""

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
