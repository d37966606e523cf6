"""Repositories and addresses that are made to harm the runner that reads them."""

from __future__ import annotations

import threading
import tracemalloc
from pathlib import Path

import pytest

from crawl.crawling import Crawls
from crawl.file_sources import crawl_files
from crawl.git_origin import Origin, opened
from forager.errors import GiveUp, InvalidInput
from forager.fetch.files import gate, git, repository
from forager.fetch.files.address import RepositoryAddress


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


def add_nested_trees(origin: Origin, *, levels: int) -> None:
    """A commit with ten times as many files for each level, which share one object."""
    oid = origin.git("hash-object", "-w", "--stdin", given="A text.").strip()
    kind, mode, suffix = "blob", "100644", ".md"
    for _ in range(levels):
        lines = (f"{mode} {kind} {oid}\t{name}{suffix}\n" for name in "abcdefghij")
        oid = origin.git("mktree", given="".join(lines)).strip()
        kind, mode, suffix = "tree", "040000", ""
    commit = origin.git("commit-tree", oid, "-m", "Nested").strip()
    origin.git("update-ref", "refs/heads/main", commit)


async def test_a_small_repository_with_a_large_listing_is_refused(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_nested_trees(origin, levels=5)
    monkeypatch.setattr(git, "MAX_LISTING", 500_000)
    tracemalloc.start()
    try:
        with pytest.raises(GiveUp, match="more than 500,000 files"):
            await opened(origin.url, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000  # its listing has 7 MB


async def test_files_are_counted_while_they_are_listed(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_nested_trees(origin, levels=3)
    parsed: list[bytes] = []
    monkeypatch.setattr(repository, "_regular_files", parsed.append)
    monkeypatch.setattr(git, "MAX_FILES", 900)
    with pytest.raises(GiveUp, match="more than"):
        await opened(origin.url, tmp_path)
    assert parsed == []


async def test_messages_without_end_are_not_kept(tmp_path: Path) -> None:
    script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo fatal: no >&2; exit 1"
    with pytest.raises(GiveUp, match="git: xxx"):
        await git.run_git(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, folder=tmp_path)


async def test_children_and_pipes_do_not_outlive_a_refused_listing(tmp_path: Path) -> None:
    # the child holds the pipes when its parent has ended; the test fails for pipes that stay open
    script = "(sleep 600; :) & head -c 140000000 /dev/zero"
    with pytest.raises(GiveUp, match="more than"):
        await git.run_git(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, folder=tmp_path)


async def test_git_and_its_children_have_limited_memory(tmp_path: Path) -> None:
    # waits until the limit is set, which happens after its start
    script = "while [ $(ulimit -v) = unlimited ]; do :; done; ulimit -v"
    found = await git.run_git(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, folder=tmp_path)
    assert int(found) * 1024 == git.MAX_MEMORY


async def test_listings_are_parsed_beside_the_loop(
    crawls: Crawls, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, str] = {}
    for module, name in (
        (repository, "_regular_files"), (repository, "_missing_objects"), (gate, "_by_url"),
    ):  # fmt: skip
        original = getattr(module, name)

        def note(*given: object, _original: object = original, _name: str = name) -> object:
            threads[_name] = threading.current_thread().name
            assert callable(_original)
            return _original(*given)

        monkeypatch.setattr(module, name, note)
    done = await crawl_files(crawls, repository=origin.url)
    assert done.job.status == "completed"
    assert len(threads) == 3
    assert threading.main_thread().name not in threads.values()


@pytest.mark.parametrize(
    "url",
    [
        "https://h.example/a;b/c.git", "https://h.example/a#b.git", 'https://h.example/"a".git',
        "https://h.example/a\\b.git", "https://h.example/a\x7f.git", "https://h.example;b/c.git",
        "https://h_a.example/c.git", "https://h%41.example/c.git", "https://h.example./c.git",
        "https://h.example:99999/c.git", "https://h.example:0/c.git", "https://h.example:/c.git",
        "https://h.example:x/c.git", "https://[::1/c.git", "https://[1:2]/c.git",
        "https://h.example\\@other.example/c.git", "file:///a;b/c.git", "https:///c.git",
    ],
)  # fmt: skip
def test_an_address_that_can_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        RepositoryAddress(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://h.example", "http://h.example:8080/a/b.git", "https://[2001:db8::1]:8443/a",
        "https://h.example/~user/a'b(c)+d,e=f%20g.git", "file:///home/a.git",
    ],
)  # fmt: skip
def test_plain_addresses_are_accepted(url: str) -> None:
    assert RepositoryAddress(url).url == url


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(InvalidInput) as refused:
        RepositoryAddress("https://user:se;cret@h.example:x/a.git")
    assert "cret" not in str(refused.value)


async def test_git_is_given_the_address_as_it_was_checked(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if the check had missed a character that begins a comment in a configuration
    monkeypatch.setattr(RepositoryAddress, "__post_init__", lambda _: None)
    strange = origin.root.rename(origin.root.with_name("manual;b#c"))
    found = await opened(f"file://{strange}", tmp_path)
    assert "index.html" in found.paths()
    [config] = (tmp_path / "cache").glob("*.git/config")
    assert "url" not in config.read_text()
