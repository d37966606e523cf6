"""A git repository at a branch, tag or commit: its files are read from the object database.

Nothing is checked out, so hooks, filters, submodules and symbolic links have no effect.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from forager.errors import ErrorKind, GiveUp, Retry, error_text
from forager.fetch.connector import SystemResolver
from forager.fetch.files.address import RepositoryAddress
from forager.fetch.files.git import git_environment, limit_resources, run_git
from forager.fetch.files.tree import FileContent, content_type, is_plain_path, too_large
from forager.fetch.guard import GuardPolicy

# nothing repacks the cache of a source; one with more packs is fetched again
MAX_PACKS = 50
_READ_SECONDS = 60.0
# the first version that connects only to the addresses that were checked
_OLDEST_GIT = (2, 37)
_JOBS = "refs/forager"


async def open_repository(
    address: RepositoryAddress, cache: Path, *, job: str, resolver: SystemResolver
) -> Repository:
    """Fetch the commit, and those of its pages that the cache does not have.

    A job that continues reads the commit that it began with. The cache belongs to one source.
    """
    git = await _Git.open(address, cache, resolver)
    reference = f"{_JOBS}/{job}"
    await git.prepare()
    commit = await git.commit_of(reference)
    if commit is None:
        if git.is_fragmented():
            await git.prepare(again=True)
        await git.fetch([f"+{address.ref}:{reference}"])
        await git.forget(besides=reference)
        commit = await git.commit_of(reference)
    if commit is None:
        raise GiveUp(f"{address.ref} is not a commit", kind=ErrorKind.VALIDATION)
    files = await git.files(commit)
    pages = await asyncio.to_thread(_missing_pages, files, await git.missing(commit))
    if pages:
        await git.fetch([], objects=pages)
    return Repository(git, files, commit)


class Repository:
    """The files of one commit; the version of a file is the name of its object."""

    def __init__(self, git: _Git, files: Mapping[str, str], commit: str) -> None:
        self._git = git
        self._files = files
        self.commit = commit

    def close(self) -> None:
        pass

    def paths(self) -> list[str]:
        return list(self._files)

    def version(self, path: str) -> str | None:
        return self._files[path]

    def read(self, path: str, limit: int) -> FileContent:
        oid = self._files[path]
        return FileContent(self._git.blob(oid, limit), oid)


@dataclass(frozen=True, slots=True)
class _Git:
    program: str
    folder: Path
    online: Mapping[str, str]
    offline: Mapping[str, str]

    @classmethod
    async def open(cls, address: RepositoryAddress, cache: Path, resolver: SystemResolver) -> _Git:
        program = shutil.which("git")
        if program is None:
            raise GiveUp("git is not installed", hint="Repositories are read with git.")
        name = sha256(address.url.encode()).hexdigest()[:16]
        settings = await _settings(address, resolver)
        protocols = "file" if address.is_local else "https:http"
        git = cls(
            program,
            cache / f"{name}.git",
            git_environment(cache, settings, protocols=protocols),
            git_environment(cache, {}, protocols="none"),
        )
        await git._check_version()
        return git

    async def _check_version(self) -> None:
        text = (await self.run("version")).decode("ascii", "replace")
        numbers = re.search(r"(\d+)\.(\d+)", text)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST_GIT:
            raise GiveUp(f"{text.strip()} is too old", hint="Version 2.37 or newer is needed.")

    async def prepare(self, *, again: bool = False) -> None:
        """Create the cache. One that was left half made is made again."""
        config = self.folder / "config"
        self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if again or not (self.folder / "ready").exists():
            if self.folder.exists():
                await asyncio.to_thread(shutil.rmtree, self.folder)
            await self.run(
                "init", "--quiet", "--bare", "--template=", "--", str(self.folder), inside=False
            )
            text = config.read_text() + _REMOTE
            config.write_text(text.replace("repositoryformatversion = 0", _FORMAT))
            (self.folder / "ready").touch()
        for lock in self.folder.glob("*.lock"):  # of a killed run: a source has one job at a time
            lock.unlink(missing_ok=True)

    def is_fragmented(self) -> bool:
        """Whether so many fetches were added that reading gets slow: nothing repacks the cache."""
        return sum(1 for _ in self.folder.glob("objects/pack/*.pack")) > MAX_PACKS

    async def commit_of(self, reference: str) -> str | None:
        found = await self.run(
            "for-each-ref", "--format=%(objectname) %(*objectname)", "--", reference
        )
        names = found.decode().split()
        return names[-1] if names else None

    async def forget(self, *, besides: str) -> None:
        """Drop the commits of earlier jobs, of which the objects of files stay."""
        found = await self.run("for-each-ref", "--format=%(refname)", "--", _JOBS)
        for reference in found.decode().split():
            if reference != besides:
                await self.run("update-ref", "-d", reference)

    async def fetch(self, refs: Sequence[str], objects: Sequence[str] = ()) -> None:
        more = ["--stdin"] if objects else ["--depth=1"]
        await self.run(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
            "--no-auto-maintenance", "--filter=blob:none", *more, "--", "origin", *refs,
            given="".join(f"{each}\n" for each in objects).encode(),
            network=True,
        )  # fmt: skip

    async def files(self, commit: str) -> dict[str, str]:
        """The regular files of a commit by path: no links and no submodules."""
        listing = await self.run("ls-tree", "-r", "-z", "--full-tree", commit)
        return await asyncio.to_thread(_regular_files, listing)

    async def missing(self, commit: str) -> set[str]:
        """The objects of files that were not fetched yet."""
        found = await self.run("rev-list", "--objects", "--missing=print", commit)
        return await asyncio.to_thread(_missing_objects, found)

    def blob(self, oid: str, limit: int) -> bytes:
        command = [self.program, "cat-file", "blob", oid]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=dict(self.offline),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            limit_resources(process.pid)
            assert process.stdout is not None
            body = process.stdout.read(limit + 1)
            if len(body) > limit:
                process.kill()
                raise too_large(limit)
            if process.wait(_READ_SECONDS) != 0:
                raise GiveUp("the file is missing in the repository", kind=ErrorKind.PARSE)
        return body

    async def run(
        self, *arguments: str, given: bytes = b"", network: bool = False, inside: bool = True
    ) -> bytes:
        return await run_git(
            [self.program, *arguments],
            self.online if network else self.offline,
            folder=self.folder if inside and self.folder.exists() else None,
            given=given,
            network=network,
        )


def _regular_files(listing: bytes) -> dict[str, str]:
    found = {}
    for line in listing.split(b"\0"):
        about, _, name = line.partition(b"\t")
        mode, _, oid = about.decode().partition(" ")
        path = name.decode("utf-8", "surrogateescape")
        if mode.startswith("100") and is_plain_path(path):
            found[path] = oid.removeprefix("blob ")
    return found


def _missing_objects(listing: bytes) -> set[str]:
    return {line[1:] for line in listing.decode("ascii", "ignore").split() if line[0] == "?"}


def _missing_pages(files: Mapping[str, str], missing: set[str]) -> list[str]:
    return sorted({oid for path, oid in files.items() if oid in missing and content_type(path)})


_FORMAT = "repositoryformatversion = 1"
_REMOTE = """[extensions]
\tpartialClone = origin
[remote "origin"]
\tpromisor = true
\tpartialclonefilter = blob:none
"""


async def _settings(address: RepositoryAddress, resolver: SystemResolver) -> dict[str, str]:
    """The configuration of git for this address: the checked addresses of its host, no others."""
    # values in the environment are not parsed, as those in a file are
    settings = {"http.followRedirects": "false", "remote.origin.url": address.url}
    if not address.is_local:
        settings["http.curloptResolve"] = await _pinned(address, resolver)
    headers = {f"http.extraHeader#{n}": f"{name}: {text}" for n, (name, text)
               in enumerate(address.headers.items())}  # fmt: skip
    return settings | headers


async def _pinned(address: RepositoryAddress, resolver: SystemResolver) -> str:
    parts = urlsplit(address.url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    guard = GuardPolicy(allow_private=address.allow_private)
    guard.check_literal(f"[{host}]" if ":" in host else host)
    try:
        found = await resolver.resolve(host)
    except OSError as error:
        raise Retry(
            f"{host} cannot be resolved: {error_text(error)}", kind=ErrorKind.NETWORK
        ) from None
    for each in found:
        guard.check_address(each, host)
    shown = [f"[{each}]" if ":" in each else each for each in found if "%" not in each]
    return f"{host}:{port}:{','.join(shown)}"
