"""Parsers as plug-ins: what is found, who reads a page, and what broken ones cost."""

from __future__ import annotations

import sys
import threading
from decimal import Decimal
from pathlib import Path

import pytest

from forager.errors import InvalidInput, NotFound
from forager.extract.product.page import ProductPage, open_page
from forager.extract.product.product import Availability
from forager.parsers.parser import ABSENT, SiteParser
from forager.parsers.pattern import GENERIC_NAME, GENERIC_VERSION, UrlPattern, version_key
from forager.parsers.registry import (
    PrintsToStderr,
    all_parsers,
    build_registry,
    chosen_parser,
    find,
    parse_product,
    registry,
)
from parsers.archived_kiosk import item

ITEM = "http://kiosk.example/item/7"


def page_of(html: str, url: str = ITEM) -> ProductPage:
    return open_page(html.encode(), url, "text/html; charset=utf-8")


# --- patterns and versions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("shop.example/item/*", "https://shop.example/item/1", True),
        ("shop.example/item/*", "https://www.shop.example/item/1?a=b", True),
        ("shop.example/item/*", "https://shop.example:8443/item/1", True),
        ("shop.example/item/*", "https://shop.example/items/1", False),
        ("shop.example/item/*", "https://myshop.example/item/1", False),
        ("amazon.*/dp/*", "https://www.amazon.co.uk/dp/B01", True),
        ("amazon.*/dp/*", "https://amazon.de/dp/B01", True),
        ("amazon.*/dp/*", "https://amazon.attacker.com/dp/B01", False),
        ("amazon.*/dp/*", "https://amazon.de/x/dp/B01", False),
        ("amazon.*/*/dp/*", "https://amazon.de/x/dp/B01", True),
        ("127.0.0.1/*", "http://127.0.0.1:8080/any", True),
        ("*/products/*", "https://any.example/products/lamp", True),
        ("shop.example/show.php?id=*", "https://shop.example/show.php?id=4", True),
        ("shop.example/show.php?id=*", "https://shop.example/show.php", False),
        ("shop.example/", "https://shop.example/", True),
        ("shop.example/", "https://shop.example/a", False),
    ],
)
def test_a_pattern_is_a_host_and_a_path(pattern: str, url: str, fits: bool) -> None:
    assert UrlPattern.compile(pattern).matches(url) is fits


@pytest.mark.parametrize("pattern", ["", "shop", "https://shop.example/*", "sh*p.example/*", "/*"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="not a URL pattern"):
        UrlPattern.compile(pattern)


def test_versions_are_ordered_by_their_numbers() -> None:
    assert sorted(["1.10", "2", "1", "1.9"], key=version_key) == ["1", "1.9", "1.10", "2"]
    assert max(["9", "10", "9.9"], key=version_key) == "10"
    for wrong in ("", "v1", "1.", "1.x", "1-2", "1" * 20):
        with pytest.raises(InvalidInput):
            version_key(wrong)


# --- who reads a page ----------------------------------------------------------------------------


def test_a_page_without_a_site_parser_is_read_generically() -> None:
    parsed = parse_product(page_of("<h1>Lamp</h1>", "https://other.example/lamp"))
    assert (parsed.parser, parsed.version) == (GENERIC_NAME, GENERIC_VERSION)
    assert chosen_parser("https://other.example/lamp") == "generic"


def test_the_parser_for_amazon_is_an_installed_plug_in() -> None:
    assert chosen_parser("https://www.amazon.co.jp/dp/B000000001") == "amazon"
    [amazon] = [each for each in all_parsers() if each.name == "amazon"]
    assert amazon.origin == "forager-crawler"


def test_the_newest_version_reads_unless_another_is_named(kiosk: None) -> None:
    page = open_page(item(7, was="£9"), ITEM, "text/html")
    assert parse_product(page).version == "10"
    first = parse_product(page, {"kiosk": "1", "amazon": "1"})
    assert (first.version, first.product.price, first.product.sku) == ("1", Decimal("7.50"), "K-7")
    second = parse_product(page, {"kiosk": "2"})
    assert (second.version, second.product.price) == ("2", Decimal(9))
    assert second.product.brand == "Maker 7"
    assert second.product.evidence["brand"].origin == "parser:kiosk"


def test_a_version_that_is_not_installed_is_replaced_by_the_newest(kiosk: None) -> None:
    assert parse_product(page_of("<h1>A"), {"kiosk": "77"}).version == "10"


def test_versions_are_found_by_name(kiosk: None) -> None:
    assert find("kiosk") == "10"
    assert find("kiosk", "2") == "2"
    assert find("generic") == GENERIC_VERSION
    with pytest.raises(NotFound, match="Installed: 1, 2, 10"):
        find("kiosk", "3")
    with pytest.raises(NotFound, match="no parser 'kisok'"):
        find("kisok")


def test_priority_then_the_more_telling_pattern_decides(tmp_path: Path) -> None:
    source = """
from forager.parsers.parser import SiteParser
class Wide(SiteParser):
    name = "wide"; patterns = ("*/item/*",)
class Narrow(SiteParser):
    name = "narrow"; patterns = ("shop.example/item/*",)
class Urgent(SiteParser):
    name = "urgent"; patterns = ("*/item/9*",); priority = 1
"""
    file = tmp_path / "three.py"
    file.write_text(source)
    found = build_registry([str(file)])
    assert found.chosen("https://shop.example/item/1") == "narrow"
    assert found.chosen("https://else.example/item/1") == "wide"
    assert found.chosen("https://shop.example/item/99") == "urgent"


def test_patterns_count_as_the_version_that_reads_has_them(tmp_path: Path) -> None:
    file = tmp_path / "moved.py"
    file.write_text(
        GOOD.format(version="1") + GOOD.format(version="2").replace("Corner", "Corner2") + "    "
        "patterns = ('corner.example/*', 'moved.example/*')"
    )
    found = build_registry([str(file)])
    url = "https://moved.example/x"
    assert found.chosen(url) == "corner"
    assert found.chosen(url, {"corner": "2"}) == "corner"
    assert found.chosen(url, {"corner": "1"}) == "generic"


# --- what a parser says --------------------------------------------------------------------------


class Odd(SiteParser):
    name = "odd"
    patterns = ("odd.example/*",)

    def product_name(self) -> str:
        return "  A <b>lamp</b> "

    def price(self) -> str:
        return "EUR 1.234,50"

    def list_price(self) -> float:
        return 1500.5

    def currency(self) -> str:
        return "€"

    def availability(self) -> str:
        return "https://schema.org/LimitedAvailability"

    def rating(self) -> int:
        return 11

    def review_count(self) -> str:
        return "2 480 reviews"

    def gtin(self) -> str:
        return "4006381333932"

    def category(self) -> list[str]:
        return ["Home", "Lamps"]

    def images(self) -> list[str]:
        return ["/big.jpg", "https://cdn.example/side.jpg"]

    def sku(self) -> str:
        raise RuntimeError("no number here")

    def brand(self) -> None:
        return None

    def description(self) -> str:
        sys.exit("a parser cannot end the program")


def test_values_are_read_as_people_write_them_and_wrong_ones_are_problems() -> None:
    reading = Odd.read(page_of("<p>", "https://odd.example/a/b"))
    values = {fact.field.value: fact.value for fact in reading.facts}
    assert values["name"] == "A lamp"
    assert values["price"] == Decimal("1234.50")
    assert values["list_price"] == Decimal("1500.5")
    assert values["currency"] == "EUR"
    assert values["availability"] is Availability.LIMITED
    assert values["review_count"] == 2480
    assert values["category"] == ("Home", "Lamps")
    assert [image.url for image in values["images"]] == [
        "https://odd.example/big.jpg",
        "https://cdn.example/side.jpg",
    ]
    problems = {problem.field: problem.message for problem in reading.problems}
    assert problems == {
        "rating": "NotUsable: '11' is no rating",
        "gtin": "NotUsable: '4006381333932' is no gtin",
        "sku": "RuntimeError: no number here",
        "description": "SystemExit: a parser cannot end the program",
    }


def test_a_field_that_breaks_costs_that_field_only(kiosk: None) -> None:
    parsed = parse_product(page_of(item(7).decode()), {"kiosk": "10"})
    assert parsed.product.price == Decimal("7.50")
    assert [(p.field, p.message) for p in parsed.problems] == [("brand", "KeyError: 'maker'")]


def test_what_is_absent_is_absent_whatever_else_the_page_says(kiosk: None) -> None:
    html = """<script type="application/ld+json">{"@context": "https://schema.org",
        "@type": "Product", "name": "Lamp", "sku": "L-1"}</script><h1>Lamp</h1>"""
    parsed = parse_product(page_of(html), {"kiosk": "2"})
    assert parsed.product.sku is None
    assert "sku" not in parsed.product.evidence
    assert repr(ABSENT) == "ABSENT"


def test_what_a_parser_prints_does_not_reach_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "chatty.py"
    file.write_text("print('loading')\n" + "from forager.parsers.parser import SiteParser\n")
    build_registry([str(file)])
    out, err = capsys.readouterr()
    assert out == ""
    assert "loading" in err


def test_threads_leave_standard_output_as_it_was() -> None:
    before = sys.stdout
    aside = PrintsToStderr()
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with aside:
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=stay)
    with aside:
        other.start()
        assert inside.wait(10)
    assert sys.stdout is sys.stderr
    leave.set()
    other.join(10)
    assert sys.stdout is before


# --- plug-ins that are broken --------------------------------------------------------------------


def install(folder: Path, name: str, entry_points: str, **modules: str) -> None:
    """A package as pip leaves it behind: modules, and metadata with entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[forager.parsers]\n{entry_points}\n")
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


GOOD = """
from forager.parsers.parser import SiteParser
class Corner(SiteParser):
    name = "corner"
    version = "{version}"
    patterns = ("corner.example/*",)
"""


def test_installed_packages_offer_several_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path,
        "corner-parsers",
        "corner = corner_one:Corner\ncorner-next = corner_two",
        corner_one=GOOD.format(version="1"),
        corner_two=GOOD.format(version="1.1"),
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = build_registry()
    assert found.versions("corner") == ("1", "1.1")
    assert found.plugins["corner"]["1"].origin == "corner-parsers"
    assert found.chosen("https://corner.example/x") == "corner"
    assert found.broken == ()


def test_broken_plug_ins_are_named_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path,
        "broken-parsers",
        "a = is_missing\nb = raises_it\nc = exits_it\nd = empty_it\ne = wrong_it\nf = twice_it",
        raises_it="1 / 0",
        exits_it="raise SystemExit(3)",
        empty_it="",
        wrong_it=GOOD.format(version="one"),
        twice_it=GOOD.format(version="1").replace('"corner"', '"amazon"'),
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = build_registry(["no.such.module", str(tmp_path / "none.py")])
    reasons = [plugin.reason for plugin in found.broken]
    for part in (
        "No module named 'is_missing'",
        "division by zero",
        "SystemExit: 3",
        "it has no SiteParser with a name",
        "'one' is not a version of a parser",
        "amazon 1 is there already, from forager-crawler",
        "No module named 'no'",
        "FileNotFoundError",
    ):
        assert any(part in reason for reason in reasons), (part, reasons)
    assert len(reasons) == 8
    assert found.chosen("https://amazon.de/dp/B1") == "amazon"


def test_a_parser_cannot_take_the_name_of_the_generic_one(tmp_path: Path) -> None:
    file = tmp_path / "impostor.py"
    file.write_text(GOOD.format(version="1").replace('"corner"', '"generic"'))
    [broken] = build_registry([str(file)]).broken
    assert broken.reason == "a parser cannot be called generic"


def test_a_parser_without_patterns_is_no_parser() -> None:
    with pytest.raises(InvalidInput, match="patterns must be a tuple"):
        type("Empty", (SiteParser,), {"name": "empty"})
    with pytest.raises(InvalidInput, match="cannot be the name"):
        type("Named", (SiteParser,), {"name": "Big Shop", "patterns": ("a.example/*",)})


def test_the_modules_of_this_process_stay_out_of_other_tests() -> None:
    assert "kiosk" not in registry().plugins
    assert "forager_parser_kiosk_parsers" not in sys.modules
