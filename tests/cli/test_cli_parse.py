"""`forager parse`: a file without any database, a URL as it is fetched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli_command import FORAGER, forager

from servers.site import Site, html, text

PAGE = """
<html lang="en"><head><title>Locks</title></head><body>
<nav><a href="/">Menu</a></nav>
<main><h1 id="locks">Locks</h1><p>A row is <b>locked</b> when it is updated, and stays so.</p>
<h2 id="rows">Rows</h2><p>See <a href="tables.html">tables</a>.</p>
<pre><code class="language-sql">SELECT 1 FOR UPDATE</code></pre></main></body></html>
"""
# nobody can connect to it: whoever needs a database would fail
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
    assert list(first) == ["heading", "level", "anchor", "content", "position", "parent"]
    assert first == {
        "heading": "Locks", "level": 1, "anchor": "locks", "position": 0, "parent": None,
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
    product = forager("parse", str(tmp_path / "page.html"), "--kind", "product")
    assert (product.code, product.out) == (2, "")
    assert "yet" in product.err
    missing = forager("parse", "docs.example.org")
    assert missing.code == 2
    assert "no file docs.example.org" in missing.err
    assert forager("parse", str(tmp_path)).code == 2
    assert forager("parse", str(tmp_path / "page.html"), "--url", "ftp://x/").code == 2
    image = forager("parse", str(tmp_path / "logo"))
    assert image.code == 1
    assert "nothing to read" in image.err


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
