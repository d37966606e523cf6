"""A tree of files: what a folder, an archive and a repository have in common."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Protocol

from forager.errors import ErrorKind, GiveUp

MAX_FILES = 500_000
MAX_DEPTH = 64
_TYPES = {
    **dict.fromkeys((".html", ".htm"), "text/html"),
    ".xhtml": "application/xhtml+xml",
    **dict.fromkeys((".md", ".mdx", ".markdown"), "text/markdown"),
    ".rst": "text/x-rst",
    ".txt": "text/plain",
    ".pdf": "application/pdf",
}
_OPENAPI = {".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml"}


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file, and the version that it has as long as it does not change."""

    body: bytes
    version: str


class FileTree(Protocol):
    """Files by their paths, which are relative and were listed by the tree itself.

    Everything in it may be hostile: links are never followed, and only regular files are listed.
    """

    def paths(self) -> list[str]:
        """The paths of all files. Names that are not UTF-8 contain surrogates."""

    def version(self, path: str) -> str | None:
        """The version of a file if it is known without reading the file."""

    def read(self, path: str, limit: int) -> FileContent:
        """Raise GiveUp if the file is gone, or larger than `limit`."""

    def close(self) -> None:
        """Release the file or folder; nothing of the tree can be read afterwards."""


def content_type(path: str) -> str | None:
    """The type of a file that is a page; None for all others."""
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    if suffix in _OPENAPI:
        return _OPENAPI[suffix] if "openapi" in name or "swagger" in name else None
    return _TYPES.get(suffix)


def content_version(body: bytes) -> str:
    return f"sha256-{sha256(body).hexdigest()[:32]}"


def is_plain_path(path: str) -> bool:
    """Whether a path stays within its tree; hidden files and folders are not part of one."""
    parts = path.split("/")
    if len(parts) > MAX_DEPTH or "\\" in path or "\0" in path:
        return False
    return all(part and not part.startswith(".") for part in parts)


def below(path: str, folder: str) -> str | None:
    """The path relative to a folder of the tree; None if it is outside. Empty: the tree itself."""
    if not folder:
        return path
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else None


def too_many() -> GiveUp:
    return GiveUp(f"there are more than {MAX_FILES:,} files", kind=ErrorKind.TOO_LARGE)


def too_large(limit: int) -> GiveUp:
    return GiveUp(f"the file is larger than {limit:,} bytes", kind=ErrorKind.TOO_LARGE)
