"""Where files are read from: a folder, an archive or a git repository; and what of it to read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import PurePosixPath
from urllib.parse import quote

from forager.errors import InvalidInput
from forager.fetch.files.tree import is_plain_path

_REF = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_+-]|[./](?![./]))*(?<!\.lock)(?<![./])")

# printable ASCII, without the characters that mean something in a configuration of git
_URL = re.compile(
    r"(?:https?://(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?=/|$)|file://(?=/))[!$-:<-\[\]-~]*"
)


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """Where a repository is, and what of it to read."""

    url: str
    ref: str = "HEAD"
    headers: Mapping[str, str] = field(default_factory=dict)
    allow_private: bool = False

    def __post_init__(self) -> None:
        check_repository(self.url, self.ref)

    @property
    def is_local(self) -> bool:
        return self.url.startswith("file:///")


@dataclass(frozen=True, slots=True)
class FileSource:
    """A folder, archive or repository that a crawl reads instead of a site."""

    folder: str | None = None
    repository: str | None = None
    ref: str | None = None
    subfolder: str | None = None

    @property
    def name(self) -> str:
        name = PurePosixPath(self.folder or self.repository or "").name.removesuffix(".git")
        return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "files"

    @property
    def public_url(self) -> str:
        """The URL below which its files are shown if no other one is given.

        Most sites of repositories show a file below `blob` and its branch or tag.
        """
        subfolder = (self.subfolder or "").strip("/")
        inside = quote(f"{subfolder}/" if subfolder else "")
        if self.repository is None:
            return f"http://{self.name}.localhost/"
        if not self.repository.startswith(("https://", "http://")):
            return f"http://{self.name}.localhost/{inside}"
        site = self.repository.rstrip("/").removesuffix(".git")
        return f"{site}/blob/{self.ref or 'HEAD'}/{inside}"

    def check(self) -> None:
        """Raise InvalidInput if the parts contradict each other or are not plain."""
        if self.folder is not None and self.repository is not None:
            raise InvalidInput("give either a folder or a repository")
        if self.folder is not None and (self.ref or not self.folder.startswith("/")):
            raise InvalidInput("folder must be an absolute path, and has no ref")
        if self.subfolder is not None and not is_plain_path(self.subfolder.strip("/")):
            raise InvalidInput("subfolder must be a path inside, without hidden folders")
        if self.repository is not None:
            check_repository(self.repository, self.ref or "HEAD")


def _is_plain(url: str) -> bool:
    """Whether git, curl and Python read the same host, port and path in it."""
    found = _URL.fullmatch(url)
    if found is None:
        return False
    try:
        if found["host"] is not None and "[" in found["host"]:
            IPv6Address(found["host"][1:-1])
    except ValueError:
        return False
    return found["port"] is None or 0 < int(found["port"]) < 65_536


def check_repository(url: str, ref: str) -> None:
    """Raise InvalidInput for anything but a plain address and a plain name."""
    if "@" in url.partition("://")[2].partition("/")[0] or "?" in url or "#" in url:
        raise InvalidInput(
            "the address of a repository has no password, query or fragment",
            hint="Send a token as a header: Authorization: Basic ….",
        )
    if not _is_plain(url):
        raise InvalidInput(
            f"{url[:200]!r} is not an address of a repository",
            hint="It begins with https://, http:// or file:///.",
        )
    if len(ref) > 200 or not _REF.fullmatch(ref):
        raise InvalidInput(f"{ref[:200]!r} is not a branch, tag or commit")
