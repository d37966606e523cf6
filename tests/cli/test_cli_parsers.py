"""`forager parsers`, from the command to the tables and files."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from pathlib import Path

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.parsers import operations as parsers
from forager.parsers import registry
from forager.parsers.rates import ParseCount, count_parses
from forager.parsers.rollouts import roll_out
from forager.settings import Settings
from parsers.archived_kiosk import MODULE, Kiosk, item, kiosk_parsers
from support import cli
from tasks.test_rereading import VisitedKiosk, lamp

forager = partial(cli.forager, "parsers")


@pytest.fixture(autouse=True)
def environment(command_line: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_PARSER_MODULES", MODULE)
    monkeypatch.setattr(registry, "_modules", ())


@pytest.fixture
def kiosk(database_url: str, settings: Settings) -> None:
    """Three archived pages, and what was counted of them."""

    async def fill() -> None:
        async with Database(database_url) as database:
            shop = Kiosk(database, settings)
            await shop.archive([(1, item(1, was="£9")), (2, item(2)), (3, item(3))])
            async with database.transaction() as connection:
                cursor = await connection.execute("SELECT id FROM domains")
                row = await cursor.fetchone()
                assert row is not None
                count = ParseCount(row[0], "kiosk", "1", "active", 4, 3)
                await count_parses(connection, [count])

    asyncio.run(fill())


def test_parsers_are_listed_with_what_they_do(kiosk: None) -> None:
    listed = forager("list", "--json").json
    assert listed["broken"] == []
    [first] = [p for p in listed["items"] if (p["name"], p["version"]) == ("kiosk", "1")]
    assert first["state"] == "idle"
    assert first["patterns"] == ["kiosk.example/item/*", "127.0.0.1/item/*"]
    assert (first["week_pages"], first["week_rate"]) == (4, 0.75)
    shown = forager("list")
    assert shown.code == 0
    assert "75.0%" in shown.out
    assert "amazon.*/dp/*" in shown.out


def test_a_broken_plug_in_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_PARSER_MODULES", "no.such.module")
    done = forager("list", "--json")
    assert done.code == 0
    assert done.json["broken"][0]["origin"] == "no.such.module"
    assert "no.such.module was skipped" in forager("list").out


def test_rates_are_shown_by_domain(kiosk: None) -> None:
    [rate] = forager("rates", "--domain", "kiosk.example", "--json").json["items"]
    assert (rate["domain"], rate["version"], rate["week_rate"]) == ("kiosk.example", "1", 0.75)
    assert "kiosk.example" in forager("rates").out
    assert forager("rates", "--domain", "else.example").code == 2


def test_a_version_is_compared_tried_rolled_out_and_back(kiosk: None) -> None:
    assert forager("rollout", "kiosk", "1", "--json").json["active_version"] == "1"
    report = forager("backtest", "kiosk", "--version", "2", "--against", "1", "--json").json
    assert report["pages"] == 3
    assert report["fields"]["price"]["changed"] == 1
    assert report["fields"]["sku"]["lost"] == 3
    assert (report["old"]["version"], report["new"]["version"]) == ("1", "2")
    shown = forager("backtest", "kiosk", "--version", "2", "--against", "1")
    assert "price changed: 1.50 -> 9  http://kiosk.example/item/1" in shown.out

    tried = forager("rollout", "kiosk", "2", "--canary", "10%", "--json").json
    assert (tried["active_version"], tried["canary_version"]) == ("1", "2")
    assert tried["canary_share"] == 0.1
    assert "canary 10%" in forager("list").out
    assert re.search(r"active version +1", forager("rollback", "kiosk").out)
    assert forager("rollout", "kiosk", "2", "--json").json["previous_version"] == "1"
    assert forager("rollback", "kiosk", "--json").json["active_version"] == "1"
    assert forager("rollback", "kiosk").code == 4


def test_a_first_version_is_tried_beside_the_generic_extraction(kiosk: None) -> None:
    listed = forager("list").out
    assert "canary 100%" in listed
    assert "to use it: forager parsers rollout kiosk 10" in " ".join(listed.split())
    assert forager("rollout", "kiosk", "generic", "--json").json["active_version"] == "generic"


def test_histories_are_corrected_after_a_preview(kiosk: None) -> None:
    forager("rollout", "kiosk", "1")
    shown = forager("apply", "kiosk", "--version", "2")
    assert shown.code == 0
    assert "kiosk 2 read 0 pages of 0 products." in shown.err
    refused = forager("apply", "kiosk", "--version", "2", "--rewrite-history", "--yes")
    assert refused.code == 0  # there is nothing to correct
    assert forager("apply", "kiosk", "--json").json["written"] is False


def test_a_correction_prints_nothing_but_json_for_programs(
    database_url: str, settings: Settings
) -> None:
    async def visit() -> None:
        async with Database(database_url) as database:
            shop = VisitedKiosk(database, settings)
            await roll_out(database, shop.settings, "kiosk", "2")
            await shop.visit(lamp("7.50", "9"))

    with kiosk_parsers():
        asyncio.run(visit())
    forager("rollout", "kiosk", "1")
    done = forager("apply", "kiosk", "--rewrite-history", "--yes", "--json").json
    assert (done["written"], done["corrected"], done["repriced"]) == (True, 1, 1)


def test_a_backtest_without_pages_says_so() -> None:
    done = forager("backtest", "kiosk", "--version", "2", "--against", "1")
    assert done.code == 0
    assert "No page of parser kiosk is in the archive." in done.err
    assert forager("backtest", "kiosk", "--against", "8").code == 2


@pytest.mark.parametrize(("text", "share"), [("10%", 0.1), ("0.25", 0.25), ("100 %", 1.0)])
def test_shares_as_people_write_them(text: str, share: float) -> None:
    assert parsers.parse_share(text) == share


def test_what_is_no_share() -> None:
    with pytest.raises(InvalidInput, match="'10' is not a share") as refused:
        parsers.parse_share("10")
    assert "10%" in str(refused.value.hint)
    for text in ("", "ten", "-5%", "1e3"):
        with pytest.raises(InvalidInput):
            parsers.parse_share(text)


def test_a_new_parser_from_a_file_is_tested_and_corrected(tmp_path: Path) -> None:
    page = tmp_path / "saved.html"
    page.write_text("<h1>Tea</h1><b class='price'>EUR 4.20</b>")
    begin = ("new", "corner", "--pattern", "corner.example/*", "--from", str(page))
    assert forager(*begin).code == 2  # a file has no address
    done = forager(*begin, "--url", "https://corner.example/tea", "--dir", "shop", "--json")
    assert done.code == 0, done.err
    fixture = Path(done.json["fixture"])
    test = ("test", "shop", "--module", done.json["module"])
    expected = json.loads(fixture.read_text())
    expected["expected"]["price"] = "4.2"
    fixture.write_text(json.dumps(expected))
    assert forager(*test).code == 0

    expected["expected"]["price"] = "5"
    fixture.write_text(json.dumps(expected))
    failed = forager(*test)
    assert failed.code == 1
    assert 'price: expected "5", found "4.20" (parser:corner)' in failed.out
    assert forager(*test, "--json").json[0]["ok"] is False


def test_a_new_parser_from_a_task_is_not_fetched(kiosk: None, tmp_path: Path) -> None:
    url = "http://kiosk.example/item/2"
    done = forager("new", "stand", "--pattern", "kiosk.example/*", "--from", url)
    assert done.code == 0, done.err
    assert "wrote stand_parser.py" in done.out
    assert 'stand = "stand_parser"' in done.err
    written = json.loads((tmp_path / "fixtures/stand/first.json").read_text())
    assert (written["url"], written["expected"]["price"]) == (url, "2.50")


def test_a_folder_without_fixtures_is_said() -> None:
    done = forager("test")
    assert done.code == 2
