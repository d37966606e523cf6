"""Reading: what parsers say of a page, and what they break."""

from __future__ import annotations

from pathlib import Path

import pytest

from forager.db.database import Database
from forager.logs import configure_logs
from forager.parsers import reading, registry
from forager.parsers.breakers import ParserBreakers
from forager.parsers.page_cache import CachedPage
from forager.parsers.parser import FieldProblem
from forager.parsers.reading import ReadingPool, tried_versions
from forager.parsers.rollouts import roll_out
from forager.settings import Settings
from parsers.archived_kiosk import MODULE, Kiosk, item
from tasks.working import Tasks, at_work

URL = "http://kiosk.example/item/1"
SLOW = item(1, more="<p class='slow'>wait</p>")
NARROWED = """
from forager.parsers.parser import SiteParser

class Narrow(SiteParser):
    name = "narrow"
    version = "1"
    patterns = ("narrow.example/old/*",)

class Narrow2(Narrow):
    version = "2"
    patterns = ("narrow.example/new/*",)
"""


pytestmark = pytest.mark.usefixtures("kiosk")


def page(body: bytes) -> CachedPage:
    return CachedPage(URL, "text/html; charset=utf-8", body)


async def test_a_version_on_trial_that_hangs_leaves_the_other_reading_alone(
    settings: Settings,
) -> None:
    hurried = settings.model_copy(update={"extraction_time_limit": 1.0, "extraction_processes": 1})
    async with ReadingPool(hurried) as pool:
        active = await pool.parse(page(SLOW), {"kiosk": "1"})
        assert (active.version, active.error, active.broke) == ("1", None, False)
        assert active.product is not None
        assert active.language == "en-gb"
        canary = await pool.parse(page(SLOW), {"kiosk": "10"})
        assert (canary.parser, canary.version, canary.broke) == ("kiosk", "10", True)
        assert canary.product is None
        assert "takes longer than 1 s" in (canary.error or "")

        other = await pool.parse(page(item(1)), {"kiosk": "10"})
        assert (other.broke, other.problems) == (
            False,
            (FieldProblem("brand", "KeyError: 'maker'"),),
        )


def test_the_versions_decide_whose_patterns_count(tmp_path: Path) -> None:
    module = tmp_path / "narrow.py"
    module.write_text(NARROWED, encoding="utf-8")
    registry.load_parsers([str(module)])  # forgotten with the kiosk's
    old, new = "http://narrow.example/old/1", "http://narrow.example/new/1"
    active, canary = {"narrow": "1"}, {"narrow": "2"}
    assert tried_versions(new, active, canary) == canary
    assert tried_versions(old, active, canary) is None
    assert tried_versions(old, active, None) is None


async def test_fields_that_a_parser_broke_at_are_kept_as_warnings(
    database: Database, settings: Settings
) -> None:
    settings = settings.model_copy(update={"parser_modules": (MODULE,), "images": False})
    shop = Kiosk(database, settings)
    # the parser does not know this price
    foreign = item(2).replace(b"class='now'", b"itemprop='price'")
    await shop.archive([(1, item(1)), (2, foreign)])
    await roll_out(database, settings, "kiosk", "10")
    tasks = Tasks(database, settings)
    await tasks.sql("UPDATE crawl_tasks SET updated_at = 'yesterday'")
    async with at_work(tasks):
        await tasks.all_when(shop.task_ids, "completed")
    warning = {
        "field": "brand",
        "rule": "parser",
        "message": "KeyError: 'maker'",
        "severity": "warning",
    }
    first, second = await tasks.sql("SELECT outcome, problems FROM extractions ORDER BY url")
    # a parser that breaks at fields does not do well, although the page is kept
    assert first == ("suspect", [warning])
    assert second[0] == "suspect"
    assert [(each["field"], each["rule"]) for each in second[1]] == [
        ("brand", "parser"),
        ("price", "fallback"),
    ]
    for [problems] in await tasks.sql("SELECT problems FROM products"):
        assert problems == [warning]
    assert await tasks.sql("SELECT pages, good FROM parse_rates") == [(2, 0)]


async def test_a_parser_that_hangs_costs_its_own_shop_only(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # without the bypass, which would end the wait of its shop after two pages
    monkeypatch.setattr(ParserBreakers, "read", lambda breakers, *page: breakers._pool.parse(*page))
    changes = {
        "parser_modules": (MODULE,), "images": False, "extraction_time_limit": 1.0,
        "extraction_processes": 2,
    }  # fmt: skip
    settings = settings.model_copy(update=changes)
    hanging, other = Kiosk(database, settings), Kiosk(database, settings, "other.example")
    await hanging.archive((number, SLOW) for number in range(100))
    other.task_ids = [*hanging.task_ids]  # the next segment has another name
    await other.archive((number, item(number)) for number in range(1, 4))
    await roll_out(database, settings, "kiosk", "10")
    tasks = Tasks(database, settings)
    await tasks.sql("UPDATE crawl_tasks SET updated_at = 'yesterday'")
    async with at_work(tasks):
        await tasks.all_when(other.task_ids[-3:], "completed")
        waiting = await tasks.sql(
            "SELECT count(*) FROM crawl_tasks WHERE status IN ('downloaded', 'parsing')"
        )
    assert waiting[0][0] > 50


async def test_a_worker_names_the_parsers_that_it_cannot_use(
    database: Database, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "broken.py"
    module.write_text("import nothing_like_it", encoding="utf-8")
    broken = settings.model_copy(update={"parser_modules": (str(module),)})
    configure_logs("warning")
    async with at_work(Tasks(database, broken)):
        pass
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot be used" in line]
    assert len(said) == 1
    assert "nothing_like_it" in said[0]


def test_a_product_with_invalid_values_is_an_error_of_its_parser() -> None:
    answer = {
        "parser": "shop", "version": "1", "language": None, "canonical": None, "seconds": 0.1,
        "product": {"name": "Lamp", "variants": [{"sku": 5}]},
    }  # fmt: skip
    parsed = reading._parsed(answer)
    assert parsed.product is None
    assert "invalid product" in str(parsed.error)
