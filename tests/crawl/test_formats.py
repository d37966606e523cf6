"""PDF and OpenAPI documents on a site and in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawl.crawling import Crawls
from crawl.file_sources import ask_agent, changed_pages, crawl_files
from crawl.refreshing import SOURCE
from forager.documents.reader import read_page
from forager.extract.document import extract_reading
from forager.extract.kinds import ContentKind
from servers.site import Page, Site, html
from support.pdf import make_pdf

PUMP = [
    ["Manual of the pump", "The pump moves water uphill, from a well or a lake to the house."],
    [
        "1.1 Screws",
        "Use M8 screws of steel, four of them, and tighten them with a hydro-",
        "meter.",
    ],
    ["2 Repair (by a plumber)", "Replace the seal every five years."],
]
OUTLINE = [("Manual of the pump", 0), ("Screws", 1), ("Repair (by a plumber)", 2)]
API = """\
# the API of a pump
openapi: 3.1.0
info: {title: Pump API, version: "2.0", description: Controls pumps.}
paths:
  /pumps/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
    get:
      operationId: getPump
      summary: Returns one pump.
      responses:
        "200":
          description: The pump.
          content: {application/json: {schema: {$ref: "#/components/schemas/Pump"}}}
components:
  schemas:
    Pump:
      required: [id]
      properties:
        id: {type: integer}
        pressure: {type: number, description: In bar.}
"""


def sections(body: bytes, kind: str, url: str) -> dict[str, tuple[str | None, str]]:
    document = extract_reading(body, url, kind).document
    assert document is not None
    return {each.heading: (each.anchor, each.content) for each in document.sections}


async def test_a_pdf_on_a_site(crawls: Crawls, site: Site) -> None:
    pdf = {"Content-Type": "application/pdf"}
    site.pages = {
        "/": html("Home", ["/pump.pdf", "/scan.pdf", "/broken.pdf"]),
        "/pump.pdf": Page(make_pdf(PUMP, OUTLINE, "Pump"), headers=pdf),
        "/scan.pdf": Page(make_pdf([[]]), headers=pdf),
        "/broken.pdf": Page(b"%PDF-1.7 broken", headers=pdf),
    }
    first = await crawl_files(crawls, urls=[f"{site.url}/"])
    scan = first.visited[f"{site.url}/scan.pdf"]
    assert (scan.outcome, scan.reason) == ("excluded", "no_text")
    assert "scanned" in (scan.detail or "")
    assert first.visited[f"{site.url}/broken.pdf"].detail == "the PDF is damaged"
    answer = await ask_agent(crawls, "M8 screws")
    assert f"{site.url}/pump.pdf#page=2" in answer
    assert "hydrometer" in answer
    changed = [*PUMP[:2], ["2 Repair (by a plumber)", "Replace the seal every six years."]]
    site.pages["/pump.pdf"] = Page(make_pdf(changed, OUTLINE, "Pump"), headers=pdf)
    await crawl_files(crawls, urls=[f"{site.url}/"])
    assert (await changed_pages(crawls))["changed"] == ["pump.pdf"]


async def test_an_openapi_document_in_a_folder(crawls: Crawls, tmp_path: Path) -> None:
    (tmp_path / "openapi.yaml").write_text(API)
    (tmp_path / "package.json").write_text("{}")
    done = await crawl_files(crawls, folder=str(tmp_path), urls=["https://api.example.org/"])
    assert done.pages("https://api.example.org/") == {"openapi.yaml"}
    assert "openapi.yaml#operation/getPump" in await ask_agent(crawls, "get pump by id")
    (tmp_path / "openapi.yaml").write_text(API.replace("In bar.", "In pascal."))
    await crawl_files(crawls, folder=str(tmp_path), urls=["https://api.example.org/"])
    assert (await changed_pages(crawls))["changed"] == ["openapi.yaml"]
    page = await read_page(
        crawls.database, "https://api.example.org/openapi.yaml", source_id=SOURCE
    )
    assert "In pascal." in page.markdown


def test_the_outline_of_a_pdf_gives_sections() -> None:
    found = sections(make_pdf(PUMP, OUTLINE), "application/pdf", "https://a.example/pump.pdf")
    assert [anchor for anchor, _ in found.values()] == ["page=1", "page=2", "page=3"]
    assert found["Screws"][1].startswith("Use M8 screws")
    assert found["Repair (by a plumber)"][1] == "Replace the seal every five years."


def test_a_pdf_without_an_outline_has_a_section_for_each_page() -> None:
    pages = [["Header", f"Text {word}.", "Footer 7"] for word in "abcde"]
    found = sections(make_pdf(pages), "application/pdf", "https://a.example/pump.pdf")
    assert found == {
        f"Page {number}": (f"page={number}", f"Text {word}.")
        for number, word in enumerate("abcde", 1)
    }


def test_an_openapi_document_has_a_section_for_each_operation_and_schema() -> None:
    found = sections(API.encode(), "application/yaml", "https://a.example/openapi")
    anchor, text = found["GET /pumps/{id}"]
    assert anchor == "operation/getPump"
    assert "| id | path (required) | integer |" in text
    assert "| 200 | The pump. | Pump |" in text
    assert "| pressure | number | In bar. |" in found["Pump"][1]


ALIASES = "".join(f"b{number}: [{', '.join(['*a'] * 9)}]\n" for number in range(500))
DAMAGED = [
    '{"openapi": "3.0.0"',
    '{"openapi": "3.0.0", "paths": []}',
    "openapi: 3.0.0\npaths: &a [*a]",
    "openapi: 3.0.0\npaths: {/a: {get: {parameters: 7, responses: [1]}}}",
    "openapi: 3.0.0\n\tx: y",
    '{"openapi": "3.0.0", "info": ' + '{"a": ' * 2000 + "1" + "}" * 2001,
    f"openapi: 3.0.0\na: &a [1]\n{ALIASES}",
    "openapi: 3.0.0\ncomponents: {schemas: {A: &a {properties: {x: *a}, allOf: [*a, *a, *a]}}}",
]


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_openapi_documents_do_no_harm(text: str) -> None:
    facts = extract_reading(
        text.encode(), "https://a.example/openapi.json", "application/json"
    ).facts
    assert facts.kind in (ContentKind.OPENAPI, ContentKind.OTHER)


def test_other_json_is_no_page() -> None:
    facts = extract_reading(b'{"a": 1}', "https://a.example/a.json", "application/json").facts
    assert facts.kind is ContentKind.OTHER
