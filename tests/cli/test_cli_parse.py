"""`forager parse`: a file without any database, a URL as it is fetched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from servers.site import Site, html, text
from support.cli import FORAGER, forager

PAGE = """
<html lang="en"><head><title>Locks</title></head><body>
<nav><a href="/">Menu</a></nav>
<main><h1 id="locks">Locks</h1><p>A row is <b>locked</b> when it is updated, and stays so.</p>
<h2 id="rows">Rows</h2><p>See <a href="tables.html">tables</a>.</p>
<pre><code class="language-sql">SELECT 1 FOR UPDATE</code></pre></main></body></html>
"""
# nothing listens here: a command that needs a database would fail
NOWHERE = "postgresql://127.0.0.1:1/none"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "locks & keys.html"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_a_file_needs_no_database(page: Path) -> None:
    done = forager(
        "parse", str(page), "--url", "https://docs.example/guide/locks.html", "--kind", "document",
        "--json", FORAGER_DATABASE_URL=NOWHERE,
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert done.json["title"] == "Locks"
    assert done.json["language"] == "en"
    assert "[tables](https://docs.example/guide/tables.html)" in done.json["markdown"]
    assert "```sql\nSELECT 1 FOR UPDATE\n```" in done.json["markdown"]
    assert "Menu" not in done.json["markdown"]
    first, second = done.json["sections"]
    assert list(first) == ["heading", "level", "anchor", "content", "position", "parent", "anchors"]
    assert first == {
        "heading": "Locks", "level": 1, "anchor": "locks", "position": 0, "parent": None,
        "anchors": [],
        "content": "A row is **locked** when it is updated, and stays so.",
    }  # fmt: skip
    assert (second["heading"], second["level"], second["parent"]) == ("Rows", 2, 0)


def test_a_file_is_shown_for_people(page: Path) -> None:
    done = forager("parse", str(page), FORAGER_DATABASE_URL=NOWHERE)
    assert done.out.startswith("Locks\n\n# Locks\n\nA row is **locked**")
    assert "(http://localhost/tables.html)" in done.out
    named = forager("parse", str(page), "--json", FORAGER_DATABASE_URL=NOWHERE)
    assert named.json["url"] == "http://localhost/locks%20%26%20keys.html"


def test_markdown_and_text_take_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("# Guide\n\nWords.\n\n## Part\n\nMore.\n")
    (tmp_path / "notes.txt").write_text("Only words, and no heading at all.\n")
    guide = forager("parse", str(tmp_path / "guide.md"), "--url", "https://x.example/g", "--json")
    assert [each["heading"] for each in guide.json["sections"]] == ["Guide", "Part"]
    notes = forager("parse", str(tmp_path / "notes.txt"), "--json")
    assert [each["content"] for each in notes.json["sections"]] == [
        "Only words, and no heading at all."
    ]


def test_standard_input_is_a_file() -> None:
    done = subprocess.run(
        [FORAGER, "parse", "-"], input=PAGE, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("Locks\n")


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "logo").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (tmp_path / "page.html").write_text(PAGE)
    missing = forager("parse", "docs.example.org")
    assert missing.code == 2
    assert "no file docs.example.org" in missing.err
    assert forager("parse", str(tmp_path)).code == 2
    assert forager("parse", str(tmp_path / "page.html"), "--url", "ftp://x/").code == 2
    image = forager("parse", str(tmp_path / "logo"))
    assert image.code == 1
    assert "nothing to read" in image.err
    assert forager("parse", str(tmp_path / "logo"), "--kind", "product").code == 1


PRODUCT = """
<html lang="en-gb"><head><title>Copper kettle</title><script type="application/ld+json">
{"@type": "Product", "name": "Copper kettle", "brand": "Acme", "sku": "AC-1",
 "category": "Kitchen > Tea",
 "image": "/k.jpg", "aggregateRating": {"ratingValue": 4.5, "reviewCount": 12},
 "offers": {"price": 87.11, "priceCurrency": "GBP", "availability": "https://schema.org/InStock"}}
</script></head><body><h1>Copper kettle</h1></body></html>
"""


def test_the_product_of_a_page(tmp_path: Path) -> None:
    path = tmp_path / "kettle.html"
    path.write_text(PRODUCT, encoding="utf-8")
    given = ["parse", str(path), "--url", "https://shop.example/kettle", "--kind", "product"]
    done = forager(*given, "--json", FORAGER_DATABASE_URL=NOWHERE)
    assert (done.code, done.err) == (0, "")
    expected = {
        "url": "https://shop.example/kettle", "is_product": True, "name": "Copper kettle",
        "description": None, "price": "87.11", "list_price": None, "currency": "GBP",
        "availability": "in_stock", "rating": 4.5, "review_count": 12, "brand": "Acme",
        "category": "Kitchen > Tea", "category_path": ["Kitchen", "Tea"], "sku": "AC-1",
        "gtin": None,
        "images": ["https://shop.example/k.jpg"], "variants": [], "parser": "generic",
        "image_details": [{"url": "https://shop.example/k.jpg", "alt": None, "role": "primary"}],
    }  # fmt: skip
    assert {name: done.json[name] for name in expected} == expected
    assert done.json["confidence"]["price"] > 0.9
    assert done.json["origins"]["price"] == "json-ld:Product.offers"
    assert done.json["page_confidence"] > 0.5
    shown = forager(*given, FORAGER_DATABASE_URL=NOWHERE)
    assert "87.11" in shown.out
    assert "json-ld:Product.offers" in shown.out
    path.write_text(PAGE, encoding="utf-8")
    other = forager(*given, FORAGER_DATABASE_URL=NOWHERE)
    assert "hardly looks like" in other.err


def test_a_url_is_fetched(database_url: str) -> None:
    site = Site({"/": html("Fetched"), "/a.md": text("# Remarks\n\nWords.", "text/markdown")})
    with site.served():
        guarded = forager("parse", f"{site.url}/", FORAGER_DATABASE_URL=database_url)
        assert guarded.code == 4
        assert "loopback" in guarded.err
        given = ["--allow-private", "--json", "--header", "X-Key: 1"]
        found = forager("parse", f"{site.url}/", *given, FORAGER_DATABASE_URL=database_url)
        assert found.json["title"] == "Fetched"
        assert "Fetched is what this page is about" in found.json["markdown"]
        other = forager("parse", f"{site.url}/a.md", *given, FORAGER_DATABASE_URL=database_url)
        assert other.json["sections"][0]["heading"] == "Remarks"
        gone = forager("parse", f"{site.url}/gone", *given, FORAGER_DATABASE_URL=database_url)
        assert gone.code == 1
        assert "404" in gone.err
