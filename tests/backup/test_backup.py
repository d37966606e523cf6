"""A backup of a waiting crawl, restored into a new home, continues as if nothing had happened.

With the embedded server and its own programs, and with everything that an operator would type.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from pydantic import SecretStr

from crawl.crawling import Crawls
from forager import backup
from forager.backup import copy_tree, restore, save
from forager.db.database import Database, open_database
from forager.db.embedded.binaries import find_binaries
from forager.db.ids import new_id
from forager.db.schema import SCHEMA_VERSION
from forager.documents.store import embeddings
from forager.errors import InvalidInput, NotAllowed, NotFound
from forager.jobs.lifecycle import Status
from forager.jobs.workers import Registration
from forager.processes.control import StopCause
from forager.products.unseen import archive_folder
from forager.secrets import Vault
from forager.settings import Settings
from servers.site import Page, Site, html
from support.databases import (
    Databases,
    administration,
    create_database,
    drop_database,
    with_database,
)
from support.sql import execute
from support.waiting import eventually

FORAGER = Path(sys.executable).parent / "forager"
WAIT_LIMIT = 300.0


@pytest.fixture
def site() -> Iterator[Site]:
    pages = {"/": html("Start", [*(f"/{n}" for n in range(5)), "/slow"])}
    pages |= {f"/{n}": html(f"Zebra number {n}") for n in range(5)}
    pages["/slow"] = Page(html("Slow").body, hangs=True)
    site = Site(pages)
    with site.served():
        yield site


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that came with the server; what the machine has may be older."""
    folder = find_binaries().postgres.parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def typed(home: Path, *command: str | Path) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        command,
        env=os.environ | {"FORAGER_HOME": str(home)},
        cwd=home.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def db(home: Path, action: str, folder: Path, *more: str) -> str:
    return typed(home, FORAGER, "db", action, str(folder), *more)


async def paused_crawl(crawls: Crawls, site: Site) -> UUID:
    """A crawl that has fetched all but one page, and was paused then."""
    job_id = await crawls.ask(f"{site.url}/", source="docs")
    running = asyncio.create_task(crawls.go_on(job_id))

    async def has_six_pages() -> bool:
        return len((await crawls.look(job_id)).pages()) == 6

    await eventually(has_six_pages)
    await crawls.queue.pause(job_id)
    assert crawls.context is not None
    crawls.context.ask_to_stop(StopCause.PAUSE)
    assert (await running).job.status is Status.PAUSED
    return job_id


@pytest.mark.timeout(1200)
async def test_a_restored_home_goes_on_where_the_saved_one_was(site: Site, tmp_path: Path) -> None:
    old, new, kept = tmp_path / "old", tmp_path / "new", tmp_path / "kept"
    settings = Settings(home=old, log_level="critical")
    sealed = Vault(settings).encrypt("the secret of a webhook", "test")
    archived = archive_folder(settings) / "products.jsonl"
    archived.parent.mkdir()
    archived.write_bytes(b"the only copy")
    async with open_database(settings) as database:
        job_id = await paused_crawl(Crawls(database, settings), site)
        await Registration(database, new_id(), capacity=1).renew()
        # while the server runs, as it does in an installation that works
        saved = await asyncio.to_thread(db, old, "backup", kept)
        again = orjson.loads(await asyncio.to_thread(db, old, "backup", kept, "--json"))
    assert f"saved to {kept}: database of schema" in saved
    assert saved.rstrip().endswith("of the archive, the key of secrets")
    assert again == {
        "folder": str(kept),
        "schema": SCHEMA_VERSION,
        "archive_files": 0,
        "secret_key": True,
        "product_files": 0,
    }
    assert sorted(path.name for path in kept.iterdir()) == [
        "archive",
        "archived-products",
        "database.dump",
        "secret.key",
    ]
    assert (kept / "secret.key").stat().st_mode & 0o77 == 0

    restored = orjson.loads(await asyncio.to_thread(db, new, "restore", kept, "--json"))
    assert restored["archive_files"] > 0
    assert restored["product_files"] == 1
    assert (new / "archived-products" / archived.name).read_bytes() == b"the only copy"
    checked = orjson.loads(await asyncio.to_thread(typed, new, FORAGER, "doctor", "--json"))
    assert checked["ok"]
    well = {each["check"]: each["level"] for each in checked["findings"]}
    assert (well["archive"], well["schema"]) == ("ok", "ok")
    findings = {each["check"]: each["message"] for each in checked["findings"]}
    assert findings["workers"].startswith("0 for jobs, 0 for tasks"), "the dump had one"
    before = site.hits
    site.release()
    await asyncio.to_thread(typed, new, FORAGER, "resume", str(job_id))
    fetched = site.hits - before
    assert fetched["/slow"] == 1
    assert not any(fetched[f"/{n}"] for n in range(5)), "what was settled is not fetched again"
    found = await asyncio.to_thread(typed, new, FORAGER, "search", "zebra", "--json")
    assert {hit["url"] for hit in orjson.loads(found)["items"]} == {
        f"{site.url}/{n}" for n in range(5)
    }
    await asyncio.to_thread(typed, new, FORAGER, "archive", "verify")
    moved = Settings(home=new, log_level="critical")
    assert Vault(moved).decrypt(sealed, "test") == "the secret of a webhook"


@pytest.mark.timeout(300)
def test_what_is_there_is_not_overwritten(settings: Settings, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with pytest.raises(NotFound, match="no backup"):
        restore(settings, kept)
    kept.mkdir()
    (kept / "database.dump").write_bytes(b"")
    with pytest.raises(NotAllowed, match="in use already"):
        restore(settings, kept)


@pytest.mark.timeout(300)
def test_an_empty_home_has_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing to save"):
        save(Settings(home=tmp_path / "home"), tmp_path / "kept")


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("programs")
async def test_products_that_leave_while_it_is_saved_are_saved(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    folder = archive_folder(settings)
    folder.mkdir(parents=True)
    (folder / "before.parquet").write_bytes(b"put back meanwhile")

    def archive_meanwhile(step: str, _: int) -> None:
        if step == "dumping the database":
            (folder / "before.parquet").unlink()
            (folder / "meanwhile.parquet").write_bytes(b"deleted from the database")

    saved = await asyncio.to_thread(save, settings, tmp_path / "kept", progress=archive_meanwhile)
    assert saved.product_files == 2
    assert {path.name for path in (tmp_path / "kept" / "archived-products").iterdir()} == {
        "before.parquet",
        "meanwhile.parquet",
    }


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("has_pgvector", [True, False])
async def test_embeddings_are_restored_where_pgvector_is(
    database: Database,
    databases: Databases,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_pgvector: bool,
) -> None:
    async with database.transaction() as connection:
        await embeddings.create_vectors(connection, "model", 3)
        await embeddings.insert_vectors(connection, [(1, 0), (1, 1)], [(1, 0, 0), (0, 1, 0)])
        monkeypatch.setattr(embeddings, "MANY", 1)
        await embeddings.create_index_if_large(connection)
        await connection.execute("INSERT INTO domains (domain_name, base_url) VALUES ('a', 'b')")
    await asyncio.to_thread(save, settings, tmp_path / "kept")
    if not has_pgvector:
        monkeypatch.setattr(backup, "has_pgvector", lambda _: False)
    with empty_database(databases.server) as url:
        other = settings.model_copy(
            update={"home": tmp_path / "other", "database_url": SecretStr(url)}
        )
        await asyncio.to_thread(restore, other, tmp_path / "kept")
        async with Database(url, name="forager test") as restored, restored.connection() as them:
            model = await embeddings.select_model(them)
            assert model == ("model" if has_pgvector else None)
            cursor = await them.execute("SELECT domain_name FROM domains")
            assert await cursor.fetchall() == [("a",)]
            if has_pgvector:
                cursor = await them.execute(
                    "SELECT embedding::text FROM section_vectors ORDER BY 1"
                )
                assert await cursor.fetchall() == [("[0,1,0]",), ("[1,0,0]",)]


@contextmanager
def empty_database(server: str) -> Iterator[str]:
    with administration(server) as connection:
        name = create_database(connection, "template0")
        try:
            yield with_database(server, name)
        finally:
            drop_database(connection, name)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("programs")
async def test_an_archive_is_found_however_it_is_named_and_never_missed_in_silence(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    place = f"file://localhost{tmp_path}/my%20archive"
    settings = settings.model_copy(update={"archive_url": place})
    await execute(
        database, "INSERT INTO archive_segments (name, lease, records) VALUES ('a-segment', 1, 5)"
    )
    with pytest.raises(NotFound, match=r"there is no folder .*/my archive"):
        await asyncio.to_thread(save, settings, tmp_path / "kept")
    (tmp_path / "my archive").mkdir()
    (tmp_path / "my archive" / "a-segment").write_bytes(b"pages")
    assert (await asyncio.to_thread(save, settings, tmp_path / "kept")).archive_files == 1
    assert (tmp_path / "kept" / "archive" / "a-segment").read_bytes() == b"pages"


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InvalidInput, match="cannot be made in"):
        save(Settings(home=tmp_path / "home"), tmp_path / "file" / "kept")


def test_files_are_copied_once(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a").mkdir(parents=True)
    (source / "a" / "grows").write_bytes(b"one")
    (source / "goes").write_bytes(b"x")
    copied: list[int] = []
    assert copy_tree(source, target, on_copy=copied.append) == 2
    assert copied == [1, 2]
    assert copy_tree(source, target) == 0
    (source / "a" / "grows").write_bytes(b"one two")
    (source / "goes").unlink()
    assert copy_tree(source, target) == 1
    assert (target / "a" / "grows").read_bytes() == b"one two"
    assert (target / "goes").exists(), "the dump may refer to what was deleted since"
    assert not list(target.rglob("*.part"))
