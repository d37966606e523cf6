"""Copy the documentation to build/, where Zensical makes the site (`make docs`).

Pages keep their place in the repository, so that links between them work in both. Links to
source files have no target on the site and become plain text. Diagrams are drawn in the reader's
browser by a copy of mermaid that npm provides; without npm they stay text.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
PAGES = BUILD / "pages"
CONFIGURATION = ROOT / "docs" / "zensical.toml"
SOURCES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*", "benchmarks/results/*")
SUFFIXES = {".md", ".png", ".svg"}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
PATTERN = re.compile(r'^( *)"([^"\n]*\*[^"\n]*)",\n', re.MULTILINE)
DIAGRAMS = re.compile(r"^extra_javascript = .*\n| custom_fences = .*\] ", re.MULTILINE)
MERMAID = "@mermaid-js/tiny@12.0.0"
MERMAID_SHA256 = "94f4bea4d69ae2766d6d29cd3321c9ed6be8c640852c57ef89d4f9999ada9783"


def main() -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = {path for pattern in SOURCES for path in ROOT.glob(pattern) if path.suffix in SUFFIXES}
    for page in pages:
        copy = PAGES / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            copy.write_text(without_source_links(page, pages), encoding="utf-8")
        else:
            shutil.copyfile(page, copy)
    text = configuration() if add_mermaid() else DIAGRAMS.sub("", configuration())
    (BUILD / CONFIGURATION.name).write_text(text, encoding="utf-8")


def without_source_links(page: Path, pages: set[Path]) -> str:
    def keep_or_unlink(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        return link[1] if target.exists() and target not in pages else link[0]

    return LINK.sub(keep_or_unlink, page.read_text(encoding="utf-8"))


def configuration() -> str:
    """The configuration, with the pages that match and are not listed in place of each pattern."""
    text = CONFIGURATION.read_text(encoding="utf-8")

    def expanded(line: re.Match[str]) -> str:
        found = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob(line[2]))]
        return "".join(f'{line[1]}"{path}",\n' for path in found if f'"{path}"' not in text)

    return PATTERN.sub(expanded, text)


def add_mermaid() -> bool:
    script = BUILD / "mermaid.js"
    if not script.exists() and not _download_mermaid(script):
        return False
    shutil.copyfile(script, PAGES / script.name)
    return True


def _download_mermaid(script: Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, MERMAID]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"diagrams stay text, because npm failed: {error}\n")
            return False
        package = next(Path(folder).glob("*.tgz"))
        found = hashlib.sha256(package.read_bytes()).hexdigest()
        if found != MERMAID_SHA256:
            raise SystemExit(f"{MERMAID} has the checksum {found}, not {MERMAID_SHA256}")
        with tarfile.open(package) as archive:
            member = archive.extractfile("package/dist/mermaid.tiny.js")
            assert member is not None
            script.write_bytes(member.read())
    return True


if __name__ == "__main__":
    main()
