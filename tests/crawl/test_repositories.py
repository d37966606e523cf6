"""Git repositories as sources: what is fetched, what a refresh reads, and what is never run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crawl.crawling import Crawls
from crawl.file_sources import ask_agent, changed_pages, crawl_files, write, write_manual
from crawl.git_origin import Origin, opened
from forager.crawl.options import crawl_options
from forager.errors import GiveUp, InvalidInput
from forager.fetch.files.git import git_environment
from forager.fetch.files.repository import Repository

BASE = "http://manual.localhost/"


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are read."""
    paths: list[str] = []
    reading = Repository.read

    def note(self: Repository, path: str, limit: int) -> object:
        paths.append(path)
        return reading(self, path, limit)

    monkeypatch.setattr(Repository, "read", note)
    return paths


async def test_a_repository_is_crawled_and_refreshed(
    crawls: Crawls, origin: Origin, read: list[str]
) -> None:
    write(origin.root, "large.bin", "x" * 1000)
    origin.commit("Second")
    first = await crawl_files(crawls, repository=origin.url)
    assert first.pages(BASE) == {"", "guide/pump.md", "reference.rst"}, first.job.error_message
    assert "M8 screws" in await ask_agent(crawls, "screws")
    assert sorted(read) == ["guide/pump.md", "index.html", "reference.rst"]
    # only what is read was fetched
    [cache] = (crawls.settings.home / "repositories").glob("*/*.git")
    found = subprocess.run(
        ["git", "rev-list", "--objects", "--missing=print", "--all"],
        cwd=cache, check=True, capture_output=True,
    )  # fmt: skip
    assert found.stdout.count(b"?") == 1

    read.clear()
    write_manual(origin.root, text="The pump moves oil.")
    (origin.root / "reference.rst").unlink()
    write(origin.root, "new.md", "# Valves\n\nA page about valves, which did not exist before.")
    origin.commit("Third")
    second = await crawl_files(crawls, repository=origin.url)
    assert sorted(read) == ["guide/pump.md", "new.md"]
    assert second.visited[BASE].reason == "not_modified"
    assert await changed_pages(crawls) == {
        "added": ["new.md"],
        "removed": ["reference.rst"],
        "changed": ["pump.md"],
    }


async def test_a_tag_and_a_subfolder(crawls: Crawls, origin: Origin) -> None:
    origin.git("tag", "--annotate", "--message=x", "v1.0")
    write(origin.root, "guide/later.md", "# Later\n\nNot in the first version of the manual.")
    origin.commit("Second")
    base = "https://docs.example.org/1.0/"
    options = {"repository": origin.url, "urls": [base], "subfolder": "guide"}
    tagged = await crawl_files(crawls, ref="v1.0", **options)
    assert tagged.pages(base) == {"pump.md"}
    newest = await crawl_files(crawls, **options)
    assert newest.pages(base) == {"later.md"}
    assert newest.visited[f"{base}pump.md"].reason == "not_modified"


async def test_a_job_that_continues_reads_the_commit_that_it_began_with(
    origin: Origin, tmp_path: Path
) -> None:
    first = await opened(origin.url, tmp_path, job="a")
    write_manual(origin.root, text="The pump moves oil.")
    origin.commit("Second")
    again = await opened(origin.url, tmp_path, job="a")
    assert again.commit == first.commit
    assert (await opened(origin.url, tmp_path, job="b")).commit != first.commit
    # the first one is forgotten
    assert (await opened(origin.url, tmp_path, job="a")).commit != first.commit


async def test_a_cache_that_was_left_half_made_is_made_again(
    origin: Origin, tmp_path: Path
) -> None:
    first = await opened(origin.url, tmp_path)
    [folder] = (tmp_path / "cache").glob("*.git")
    (folder / "ready").unlink()
    (folder / "config").write_text("[broken")
    assert (await opened(origin.url, tmp_path)).commit == first.commit


async def test_nothing_of_a_repository_is_run_or_followed(
    crawls: Crawls, origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "was-run"
    script = f"#!/bin/sh\ntouch {run}\n"
    # configuration of the user and hooks in a template of the machine
    write(tmp_path, "template/hooks/post-checkout", script)
    write(tmp_path, "template/hooks/reference-transaction", script)
    for hook in (tmp_path / "template/hooks").iterdir():
        hook.chmod(0o755)
    write(tmp_path, "home/.gitconfig", f"[init]\n\ttemplateDir = {tmp_path}/template\n"
          f"[core]\n\thooksPath = {tmp_path}/template/hooks\n")  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    (origin.root / "link.txt").symlink_to("/etc/passwd")
    write(origin.root, ".gitattributes", "*.md filter=evil\n")
    write(origin.root, ".gitmodules",
          f'[submodule "a"]\n\tpath = a\n\turl = "ext::sh -c touch% {run}"\n')  # fmt: skip
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},a")
    origin.commit("Second")
    done = await crawl_files(crawls, repository=origin.url)
    assert done.pages(BASE) == {"", "guide/pump.md", "reference.rst"}
    assert not run.exists()


@pytest.mark.parametrize(
    "repository",
    [
        "ext::sh -c touch% /tmp/x", "--upload-pack=touch /tmp/x", "ssh://-oProxyCommand=x/y",
        "git@git.example.org:a.git", "git://git.example.org/a", "file://host/a", "/a/b",
        "https://user:secret@git.example.org/a.git", "https://git.example.org/a b",
        "https://git.example.org/a\n[core]", "fd::3", "https://git.example.org/a?x=1",
    ],
)  # fmt: skip
def test_other_addresses_are_refused(repository: str) -> None:
    with pytest.raises(InvalidInput):
        crawl_options({"repository": repository})


@pytest.mark.parametrize(
    "ref",
    [
        "--upload-pack=x",
        "-q",
        "a:b",
        "+a",
        "a..b",
        "a b",
        "a\nb",
        "a~1",
        "a^",
        "a.lock",
        "@{u}",
        "*",
    ],
)
def test_other_refs_are_refused(ref: str) -> None:
    with pytest.raises(InvalidInput):
        crawl_options({"repository": "https://git.example.org/a.git", "ref": ref})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "0x7f.1"])
async def test_a_private_address_is_not_asked(tmp_path: Path, host: str) -> None:
    with pytest.raises(GiveUp, match="may not be crawled"):
        await opened(f"http://{host}:9/a.git", tmp_path)


async def test_a_branch_that_does_not_exist(origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(GiveUp, match="missing"):
        await opened(origin.url, tmp_path, ref="missing")


def test_headers_are_not_arguments() -> None:
    environment = git_environment(
        Path("/home"), {"http.extraHeader#0": "Authorization: Basic c2VjcmV0"}, protocols="https"
    )
    assert "Authorization: Basic c2VjcmV0" in environment.values()
    assert environment["GIT_ALLOW_PROTOCOL"] == "https"
