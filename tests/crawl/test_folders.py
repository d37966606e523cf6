"""Folders and archives as sources: generations, differences, search, and what they cannot reach."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
import tracemalloc
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from crawl.crawling import Crawls
from crawl.file_sources import ask_agent, changed_pages, crawl_files, write, write_manual
from crawl.refreshing import SOURCE
from forager.access.caller import LOCAL, Caller
from forager.access.quota import NO_QUOTA
from forager.crawl.admission import check_addresses, preview
from forager.crawl.explain.explanation import explain
from forager.crawl.options import crawl_options
from forager.db.ids import new_id
from forager.documents.reader import read_page
from forager.errors import GiveUp, InvalidInput, NotPermitted
from forager.extract.conversion import convert
from forager.extract.kinds import ContentKind
from forager.fetch.files import archive as archives
from forager.fetch.files.archive import open_archive
from forager.fetch.files.tree import FileContent
from forager.operations.operation import Context, Scope
from forager.settings import Settings

BASE = "http://manual.localhost/"


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    root = tmp_path / "manual"
    write_manual(root)
    return root


async def test_a_folder_is_crawled_and_refreshed(crawls: Crawls, manual: Path) -> None:
    for path in manual.rglob("*.*"):
        os.utime(path, (1, 1))
    first = await crawl_files(crawls, folder=str(manual))
    assert first.outcomes(BASE) == {
        "": "fetched",
        "guide/pump.md": "fetched",
        "reference.rst": "fetched",
        "guide/pump.html": "duplicate:redirect",
        "index.html": "duplicate:redirect",
        "reference": "duplicate:redirect",
        "guide/pump.rst": "duplicate:redirect",
    }
    assert "M8 screws" in await ask_agent(crawls, "screws")
    write_manual(manual, text="The pump moves oil.")
    write(manual, "new.txt", "A new page about valves, which did not exist before.")
    (manual / "reference.rst").unlink()
    second = await crawl_files(crawls, folder=str(manual))
    assert second.visited[BASE].reason in ("not_modified", "same_content")
    assert await changed_pages(crawls) == {
        "added": ["new.txt"],
        "removed": ["reference.rst"],
        "changed": ["pump.md"],
    }
    found = await explain(crawls.database, crawls.queue, f"{BASE}guide/pump.md")
    assert f"read from {manual}" in found.outlook.message
    assert [step.via for step in found.found_by] == ["file"]


async def test_files_that_did_not_change_are_not_read_again(
    crawls: Crawls, manual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forager.fetch.files import folder

    # times of files are as exact as they need to be for this test
    monkeypatch.setattr(folder, "_FINE", 0.0)
    monkeypatch.setattr(folder, "_COARSE", 0.0)
    await crawl_files(crawls, folder=str(manual))
    write_manual(manual / "elsewhere")
    read: list[str] = []
    reading = folder.Folder.read

    def note(self: folder.Folder, path: str, limit: int) -> FileContent:
        read.append(path)
        return reading(self, path, limit)

    monkeypatch.setattr(folder.Folder, "read", note)
    second = await crawl_files(crawls, folder=str(manual))
    assert second.visited[BASE].reason == "not_modified"
    assert {path.partition("/")[0] for path in read} == {"elsewhere", "secret.txt"}


async def test_restructured_text_reads_nothing_else(crawls: Crawls, manual: Path) -> None:
    await crawl_files(crawls, folder=str(manual))
    page = await read_page(crawls.database, f"{BASE}reference.rst", source_id=SOURCE)
    assert "The content of an unknown directive stays." in page.markdown
    assert "## start(speed" in page.markdown
    assert "swordfish" not in page.markdown
    assert "raw text" not in page.markdown


@pytest.mark.parametrize("name", ["secret.svg", "secret.png", "secret"])
def test_images_in_restructured_text_are_not_read(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "<svg>swordfish</svg>")
    options = "   :loading: embed\n   :scale: 50 %\n"
    text = "".join(
        f".. {kind}:: {address}\n{options}\n"
        for kind in ("image", "figure")
        for address in (tmp_path / name, (tmp_path / name).as_uri())
    )
    html = convert(ContentKind.RST, text.encode(), None).text
    assert html.count(f'src="{tmp_path / name}"') == 2
    assert "swordfish" not in html
    assert "data:" not in html


async def test_nothing_leads_out_of_a_folder(crawls: Crawls, manual: Path) -> None:
    secret = manual.parent / "secret.txt"
    (manual / "link.txt").symlink_to(secret)
    (manual / "outside").symlink_to(manual.parent)
    os.mkfifo(manual / "pipe.txt")
    write(manual, ".hidden/key.txt", "swordfish")
    write(manual, "evil.md", "[a](../secret.txt) [b](/../secret.txt) [c](%2e%2e/secret.txt) "
          "[d](link.txt) [e](outside/secret.txt) [f](file:///etc/passwd) [g](.hidden/key.txt) "
          "[h](pipe.txt) [i](..%2fsecret.txt)")  # fmt: skip
    write(manual, "strange #1%2e?.txt", "A page with a strange name, which is found as it is.")
    done = await crawl_files(crawls, folder=str(manual))
    kept = "\n".join(str(row) for row in await crawls.sql("SELECT content FROM sections"))
    assert "swordfish" not in kept
    assert f"{BASE}strange%20%231%252e%3F.txt" in done.pages()
    assert not done.pending
    refused = {url for url in done.visited if "secret" in url or "hidden" in url or "pipe" in url}
    assert {done.visited[url].outcome for url in refused} <= {"failed", "excluded"}


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.xz"])
async def test_an_archive_is_a_source(crawls: Crawls, manual: Path, suffix: str) -> None:
    archive = manual.parent / f"manual{suffix}"
    _pack(manual, archive)
    first = await crawl_files(crawls, folder=str(archive), urls=["https://docs.example.org/"])
    assert len(first.pages()) == 3
    assert "https://docs.example.org/guide/pump.md" in await ask_agent(crawls, "screws")
    write_manual(manual, text="Another pump.")
    _pack(manual, archive)
    again = await crawl_files(crawls, folder=str(archive), urls=["https://docs.example.org/"])
    assert again.visited["https://docs.example.org/"].reason == "not_modified"
    assert (await changed_pages(crawls))["changed"] == ["pump.md"]


def _pack(folder: Path, archive: Path) -> None:
    paths = sorted(path for path in folder.rglob("*.*") if path.is_file())
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for path in paths:
                packed.write(path, str(path.relative_to(folder)))
        return
    mode = {".tar": "w", ".gz": "w:gz", ".xz": "w:xz"}[archive.suffix]
    with tarfile.open(archive, mode) as tar:  # type: ignore[call-overload]
        for path in paths:
            tar.add(path, str(path.relative_to(folder)))


def test_an_archive_gives_only_plain_files(tmp_path: Path) -> None:
    zipped, tarred = tmp_path / "a.zip", tmp_path / "a.tar"
    with zipfile.ZipFile(zipped, "w") as archive:
        for name in ("../up.txt", "/abs.txt", "a/../../b.txt", "c\\d.txt", ".git/config", "ok.txt"):
            archive.writestr(name, "text")
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bomb.txt", b"0" * 30_000_000, zipfile.ZIP_DEFLATED)
    with tarfile.open(tarred, "w") as tar:
        for name in ("../up.txt", "/abs.txt", "ok.txt"):
            tar.addfile(tarfile.TarInfo(name))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"special{kind!r}.txt")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    opened = open_archive(zipped)
    assert opened.paths() == ["ok.txt", "bomb.txt"]
    with pytest.raises(GiveUp, match="larger"):
        opened.read("bomb.txt", 20_000_000)
    opened.close()
    opened = open_archive(tarred)
    assert opened.paths() == ["ok.txt"]
    opened.close()


def test_headers_of_a_tar_file_are_limited_and_not_kept(tmp_path: Path) -> None:
    packed, large = tmp_path / "a.tar", tmp_path / "large.tar"
    # as a header of the whole archive, and of each file
    archive_headers = {f"k{n}": "x" * 1_000 for n in range(100)}
    with tarfile.open(packed, "w", pax_headers=archive_headers) as tar:
        for number in range(40):
            member = tarfile.TarInfo(f"{number}.txt")
            member.pax_headers = {"comment": "x" * 500_000}
            member.size = 4
            tar.addfile(member, io.BytesIO(b"text"))
    with tarfile.open(large, "w") as tar:
        member = tarfile.TarInfo("a.txt")
        member.pax_headers = {"comment": "x" * 2_000_000}
        tar.addfile(member)
    tracemalloc.start()
    try:
        opened = open_archive(packed)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000
    assert peak < 8_000_000
    assert len(opened.paths()) == 40
    assert opened.read("39.txt", 4).body == b"text"
    opened.close()
    with pytest.raises(GiveUp, match="a header is too large"):
        open_archive(large)


def test_the_names_in_a_tar_file_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number in range(20):
            tar.addfile(tarfile.TarInfo(f"{number}{'x' * 2_000}"))
    monkeypatch.setattr(archives, "MAX_TABLE", 30_000)
    with pytest.raises(GiveUp, match="more than"):
        open_archive(tmp_path / "a.tar")


def _paths(archive: Path) -> list[str]:
    with closing(open_archive(archive)) as opened:
        return opened.paths()


def test_an_xz_file_may_have_streams_but_not_ask_for_gigabytes(tmp_path: Path) -> None:
    packed, archive = io.BytesIO(), tmp_path / "a.tar.xz"
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a.md"))
    half = len(packed.getvalue()) // 2
    parts = (packed.getvalue()[:half], packed.getvalue()[half:])
    archive.write_bytes(b"".join(map(lzma.compress, parts)))
    assert _paths(archive) == ["a.md"]
    archive.write_bytes(lzma.compress(parts[0])[:-1])
    with pytest.raises(GiveUp, match="end"):
        _paths(archive)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 256 * 1024**2}]
    archive.write_bytes(lzma.compress(parts[0], filters=filters))
    with pytest.raises(GiveUp, match="Memory usage limit"):
        _paths(archive)


def test_the_table_of_a_zip_file_is_limited_wherever_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At this place, the end of the table contains the signature of its own beginning."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("a.md", "text")
        packed.writestr("b.md", "text")
    table = archive.read_bytes()[packed.start_dir : -22]
    place = int.from_bytes(b"PK\x05\x06", "little")
    with archive.open("r+b") as file:  # its beginning is sparse
        file.seek(place)
        count = (2).to_bytes(2, "little") * 2
        size = len(table).to_bytes(4, "little")
        file.write(table + b"PK\x05\x06" + bytes(4) + count + size + b"PK\x05\x06" + bytes(2))
    assert _paths(archive) == ["a.md", "b.md"]
    monkeypatch.setattr(archives, "MAX_TABLE", len(table) - 1)
    with pytest.raises(GiveUp, match="more than"):
        _paths(archive)


def test_a_file_in_a_tar_file_may_be_larger_than_a_header(tmp_path: Path) -> None:
    body = b"0123456789" * 200_000
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("a.txt")
        member.size = len(body)
        tar.addfile(member, io.BytesIO(body))
    opened = open_archive(tmp_path / "a.tar")
    assert opened.read("a.txt", len(body)).body == body
    os.truncate(tmp_path / "a.tar", 100_000)
    with pytest.raises(GiveUp, match="damaged"):
        opened.read("a.txt", len(body))
    opened.close()


@pytest.mark.parametrize("body", [b"", b"PK\3\4 damaged", b"\x1f\x8b damaged", b"\xfd7zXZ\0no",
                                  b"PK\5\6" + b"\0" * 8 + b"\xff" * 8 + b"\0\0"])  # fmt: skip
async def test_a_damaged_archive_is_refused(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "broken.zip").write_bytes(body)
    with pytest.raises(GiveUp):
        open_archive(tmp_path / "broken.zip")


async def test_a_folder_that_is_gone_fails_and_stays_published(
    crawls: Crawls, manual: Path
) -> None:
    await crawl_files(crawls, folder=str(manual))
    manual.rename(manual.with_name("moved"))
    done = await crawl_files(crawls, folder=str(manual))
    assert done.job.status == "failed"
    assert (await read_page(crawls.database, BASE, source_id=SOURCE)).markdown


async def test_only_admins_crawl_named_folders_over_the_api(
    crawls: Crawls, settings: Settings, manual: Path, tmp_path: Path
) -> None:
    options = crawl_options({"folder": str(manual)})
    operator = Caller(new_id(), Scope.OPERATE, quota=NO_QUOTA)
    named = settings.model_copy(update={"source_folders": (str(tmp_path),)})
    with pytest.raises(NotPermitted, match="source_folders"):
        check_addresses(options, LOCAL, settings)
    with pytest.raises(NotPermitted, match="admin"):
        check_addresses(options, operator, named)
    check_addresses(options, LOCAL, named)
    (tmp_path / "inside").symlink_to("/etc")
    for path in (f"{tmp_path}/../secret", f"{tmp_path}/inside", f"{tmp_path}x"):
        with pytest.raises(NotPermitted):
            check_addresses(crawl_options({"folder": path}), LOCAL, named)
    with pytest.raises(NotPermitted):
        check_addresses(crawl_options({"repository": "file:///etc/repo"}), LOCAL, named)
    found = await preview(Context(crawls.database, named), options)
    assert {url.via for url in found.urls} == {"file"}


@pytest.mark.parametrize(
    "given",
    [
        {"folder": "relative"},
        {"folder": "/a", "repository": "https://git.example.org/a.git"},
        {"folder": "/a", "ref": "main"},
        {"folder": "/a", "subfolder": "../b"},
        {"folder": "/a", "urls": ["https://a.example/", "https://b.example/"]},
        {"folder": "/a", "proxy": "pool"},
        {"urls": ["https://a.example/"], "ref": "main"},
    ],
)  # fmt: skip
def test_contradicting_options_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        crawl_options(given)
