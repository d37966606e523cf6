"""Pages whose text is only in the state of their scripts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.content.state import state_html
from forager.extract.document import extract_reading

URL = "https://docs.example.org/guide/"
TEXT = "The quick brown fox explains how to configure the frobnicator."
ROWS = (
    '0:["$","$L2",null,{"children":["$","main",null,{"children":[["$","h1",null,{"id":"top",'
    '"children":"Setup"}],"$L3",["$","p",null,{"children":"$4"}]]}]}]\n'
    '1:I["chunk.js",["x"],"default"]\n'
    f'3:["$","p",null,{{"children":["{TEXT} See ",["$","a",null,{{"href":"/next","children":"next"'
    '}],"."]}]\n'
    f"4:T{len(TEXT.encode()):x},{TEXT}"
    '5:["$","script",null,{"children":"code()"}]\n'
)


def shell(script: str) -> bytes:
    page = f"<html><head><title>Setup - Docs</title></head><body><div id=__next></div>{script}"
    return page.encode()


def flight(rows: str) -> str:
    half = len(rows) // 2
    pushes = (json.dumps([1, part]) for part in (rows[:half], rows[half:]))
    return "".join(f"<script>self.__next_f.push({push})</script>" for push in pushes)


def data(name: str, value: object) -> str:
    return f'<script id="{name}" type="application/json">{json.dumps(value)}</script>'


def test_elements_of_the_app_router() -> None:
    reading = extract_reading(shell(flight(ROWS)), URL, "text/html")
    assert reading.document is not None
    assert reading.document.markdown == (
        f"# Setup\n\n{TEXT} See [next](https://docs.example.org/next).\n\n{TEXT}"
    )
    assert [link.url for link in reading.facts.outlinks.links] == ["https://docs.example.org/next"]
    assert not reading.facts.needs_javascript
    assert reading.facts.content_hash is not None


@pytest.mark.parametrize("name", ["__NEXT_DATA__", "__NUXT_DATA__"])
def test_html_and_sentences_in_json(name: str) -> None:
    props = {"html": f"<h1>Setup</h1><p>{TEXT}</p>", "note": f"Remember: {TEXT}", "id": "a-b-c"}
    reading = extract_reading(shell(data(name, {"props": props})), URL, "text/html")
    assert reading.document is not None
    assert reading.document.markdown == f"# Setup\n\n{TEXT}\n\nRemember: {TEXT}"


def test_a_page_with_text_is_read_as_it_is() -> None:
    body = f"<main><p>{TEXT * 10}</p></main>{flight(ROWS)}"
    reading = extract_reading(shell(body), URL, "text/html")
    assert reading.document is not None
    assert "Setup" not in reading.document.markdown


@given(st.text(), st.lists(st.text()))
def test_any_state(text: str, rows: list[str]) -> None:
    state_html(flight("\n".join([text, *(f"{at:x}:{row}" for at, row in enumerate(rows))])))
    state_html(flight('0:["$","div",null,{"children":"$L0"}]\n1:"$1"\n2:Tffffff,x'))
    state_html(data("__NEXT_DATA__", [text, {text: rows}]))
