"""Fixtures of parsers: how they are compared, and how pytest runs them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forager.errors import InvalidInput, NotFound
from forager.parsers.fixtures import check_fixture, find_fixtures, load_fixture
from forager.parsers.page_cache import CachedPage
from forager.parsers.scaffold import write_parser
from parsers.archived_kiosk import MODULE, item

URL = "http://kiosk.example/item/7"


pytestmark = pytest.mark.usefixtures("kiosk")


def save(folder: Path, expected: dict[str, Any], *, stem: str = "page", **more: Any) -> Path:
    (folder / f"{stem}.html").write_bytes(item(7, was="£9"))
    path = folder / f"{stem}.json"
    given = {"url": URL, "parser": "kiosk", "version": "1", "expected": expected, **more}
    path.write_text(json.dumps(given))
    return path


def test_only_named_fields_are_compared(tmp_path: Path) -> None:
    path = save(tmp_path, {"price": 7.5, "sku": "K-7", "gtin": None})
    assert check_fixture(load_fixture(path)) == []
    path = save(tmp_path, {})
    assert check_fixture(load_fixture(path)) == []


def test_differences_say_what_was_expected_and_who_said_otherwise(tmp_path: Path) -> None:
    path = save(tmp_path, {"price": "8.00", "sku": None, "gtin": "123", "name": "Item 7"})
    assert [str(difference) for difference in check_fixture(load_fixture(path))] == [
        'price: expected "8.00", found "7.50" (parser:kiosk)',
        'sku: expected nothing, found "K-7" (parser:kiosk)',
        'gtin: expected "123", found nothing',
    ]


def test_a_fixture_names_its_parser_and_its_version(tmp_path: Path) -> None:
    wrong, *_ = check_fixture(load_fixture(save(tmp_path, {}, parser="amazon")))
    assert str(wrong) == 'parser: expected "amazon", found "kiosk"'
    missing, *_ = check_fixture(load_fixture(save(tmp_path, {}, version="3")))
    assert str(missing) == 'version: expected "3", found "10"'


def test_a_field_that_breaks_is_a_difference(tmp_path: Path) -> None:
    [broken] = check_fixture(load_fixture(save(tmp_path, {"price": "7.50"}, version="10")))
    assert str(broken) == """brand: expected "no error", found "KeyError: 'maker'" (parser:kiosk)"""


def test_packed_pages_and_folders_of_fixtures(tmp_path: Path) -> None:
    save(tmp_path, {"price": "7.5"}, stem="b")
    inner = tmp_path / "more"
    inner.mkdir()
    save(inner, {"price": "7.5"}, stem="a")
    (inner / "a.html").unlink()
    (inner / "a.html.gz").write_bytes(gzip.compress(item(7)))
    (tmp_path / "other.json").write_text("{}")
    found = list(find_fixtures([tmp_path]))
    assert [fixture.path.name for fixture in found] == ["b.json", "a.json"]
    assert all(check_fixture(fixture) == [] for fixture in found)


def test_fixtures_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no file or folder"):
        list(find_fixtures([tmp_path / "nowhere"]))
    (tmp_path / "alone.json").write_text("{}")
    with pytest.raises(InvalidInput, match="not a fixture"):
        list(find_fixtures([tmp_path / "alone.json"]))
    with pytest.raises(InvalidInput, match="names colour, which no fixture has"):
        load_fixture(save(tmp_path, {"colour": "red"}))
    with pytest.raises(InvalidInput, match="names wanted"):
        load_fixture(save(tmp_path, {}, wanted={}))
    path = save(tmp_path, {})
    path.write_text("[")
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_fixture(path)
    path.write_text("[]")
    with pytest.raises(InvalidInput, match="must be an object with a url"):
        load_fixture(path)
    path = save(tmp_path, {})
    (tmp_path / "page.html").unlink()
    (tmp_path / "page.html.gz").write_bytes(b"no gzip")
    with pytest.raises(InvalidInput, match="cannot be read"):
        check_fixture(load_fixture(path))


# --- through pytest ------------------------------------------------------------------------------


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "forager.parsers.testing"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", f"--rootdir={folder}", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_pytest_finds_and_runs_fixtures(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    save(tmp_path, {"price": "7.50"}, stem="right")
    save(tmp_path, {"price": "8.00"}, stem="wrong")
    (tmp_path / "unrelated.json").write_text("{}")
    done = run_pytest(tmp_path, f"--parser-module={MODULE}")
    assert done.returncode == 1, done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert 'price: expected "8.00", found "7.50" (parser:kiosk)' in done.stdout
    assert "Traceback" not in done.stdout


def test_pytest_says_which_module_is_no_parser(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    save(tmp_path, {})
    done = run_pytest(tmp_path, "--parser-module=no.such.module")
    assert done.returncode != 0
    assert "no.such.module is no parser" in done.stdout + done.stderr


# --- a new parser --------------------------------------------------------------------------------


def test_a_new_parser_passes_its_first_fixture(tmp_path: Path) -> None:
    page = CachedPage(
        "https://corner.example/p/1", None, b"<h1>Tea</h1><b class='price'>EUR 4.20</b>"
    )
    done = write_parser("corner-shop", ("corner.example/p/*",), tmp_path, page)
    assert done.module == tmp_path / "corner_shop_parser.py"
    assert done.fixture == tmp_path / "fixtures" / "corner-shop" / "first.json"
    assert done.entry_point.endswith('corner-shop = "corner_shop_parser"')
    expected = json.loads(done.fixture.read_text())["expected"]
    expected["price"] = "4.20"
    done.fixture.write_text(
        json.dumps({"url": page.url, "parser": "corner-shop", "expected": expected})
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    ran = run_pytest(tmp_path, f"--parser-module={done.module}")
    assert "1 passed" in ran.stdout, ran.stdout


def test_a_new_parser_writes_over_nothing(tmp_path: Path) -> None:
    write_parser("corner", ("corner.example/*",), tmp_path)
    with pytest.raises(InvalidInput, match="exists already"):
        write_parser("corner", ("corner.example/*",), tmp_path)


@pytest.mark.parametrize(
    ("name", "pattern", "url", "message"),
    [
        ("Corner", "corner.example/*", "https://corner.example/", "cannot be the name"),
        ("corner", "corner", "https://corner.example/", "not a URL pattern"),
        ("corner", "corner.example/*", "https://else.example/", "does not fit"),
        ("corner", "corner.example/*", "mailto:me", "is not the address"),
    ],
)
def test_what_cannot_become_a_parser(
    tmp_path: Path, name: str, pattern: str, url: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        write_parser(name, (pattern,), tmp_path, CachedPage(url, None, b""))
    assert list(tmp_path.iterdir()) == []
