"""A git repository of a test, and how a job opens it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from crawl.file_sources import write_manual
from forager.fetch.connector import SystemResolver
from forager.fetch.files.address import RepositoryAddress
from forager.fetch.files.repository import Repository, open_repository


class Origin:
    """A repository of the test."""

    def __init__(self, root: Path) -> None:
        self.root = root / "manual"
        self.root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        # as on the sites of repositories
        self.git("config", "uploadpack.allowFilter", "true")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        write_manual(self.root)
        self.commit("First")

    @property
    def url(self) -> str:
        return self.root.as_uri()

    def git(self, *arguments: str, given: str = "") -> str:
        environment = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
        }  # fmt: skip
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, check=True, capture_output=True,
            input=given.encode(),
        )  # fmt: skip
        return done.stdout.decode()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


async def opened(url: str, home: Path, *, job: str = "job", ref: str = "HEAD") -> Repository:
    address = RepositoryAddress(url, ref)
    async with SystemResolver() as resolver:
        return await open_repository(address, home / "cache", job=job, resolver=resolver)
