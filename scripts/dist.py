"""Build the wheel and the sdist of the last commit into dist/, and check them.

The wheel is built twice: from the commit, and from the unpacked sdist in another folder. Both must
be identical, so a release can be reproduced from its source.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    epoch = _git("log", "-1", "--format=%ct").decode().strip()
    if _git("status", "--porcelain"):
        print("uncommitted changes are not part of the packages", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="forager-dist-") as temporary:
        first, second, out = (Path(temporary, name) for name in ("commit", "sdist", "out"))
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "HEAD"))) as archive:
            archive.extractall(first, filter="data")
        built = _build(first, out, epoch)
        (sdist,) = out.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(second, filter="data")
        again = _build(next(second.iterdir()), Path(temporary, "again"), epoch)
        if built != again:
            sys.exit(f"not reproducible: {sorted(set(built.items()) ^ set(again.items()))}")
        subprocess.run(
            [sys.executable, "-m", "twine", "check", "--strict", *out.iterdir()], check=True
        )
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(out, ROOT / "dist")
    for name, digest in sorted(built.items()):
        print(f"{digest}  dist/{name}")


def _build(source: Path, out: Path, epoch: str) -> dict[str, str]:
    """Name and SHA-256 of each package."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", out],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}


def _git(*arguments: str) -> bytes:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    main()
