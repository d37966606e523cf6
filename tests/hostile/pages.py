"""Pages that were made to do harm, by name. Each is built when it is asked for: some are large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

HTML = "text/html; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"

# what a text may hold to make a careless regular expression try every way to divide it
RUNS: Mapping[str, str] = {
    "spaces": " ",
    "digits": "9",
    "dots": ".",
    "commas-and-digits": "1,",
    "quotes": "\"'",
    "underscores": "_",
    "asterisks": "*",
    "backticks": "`",
    "brackets": "[",
    "link-starts": "![](",
    "angle-brackets": "<",
    "ampersands": "&",
    "hyphens": "-",
    "pipes": "|",
    "hashes": "#",
    "line-ends": "\n",
    "tabs-and-line-ends": "\t\n",
    "colons": "a:",
    "slashes": "a/",
    "currencies": "£",
    "backslashes": "\\",
    "no-break-spaces": "\u00a0",
    "semicolons": "x;",
    "braces": "{",
    "equals": "a=",
    "capitals": "aB",
    "identifiers": "a_b.",
    "words": "in stock ",
}


@dataclass(frozen=True, slots=True)
class HostilePage:
    body: bytes
    content_type: str = HTML


def page(body: str, content_type: str = HTML) -> HostilePage:
    return HostilePage(f"<title>Hostile</title><main>{body}</main>".encode(), content_type)


# --- structure ------------------------------------------------------------------------------------


def nested(tag: str, depth: int, text: str = "x") -> HostilePage:
    return page(f"<{tag}>" * depth + text)


def closed(tag: str, depth: int) -> HostilePage:
    return page(f"<{tag}>" * depth + "x" + f"</{tag}>" * depth)


def lists(depth: int) -> HostilePage:
    return page("<ul><li>a" * depth)


def below(tag: str, depth: int, markup: str) -> HostilePage:
    """At each tag the parser looks up through all that is open."""
    return page(f"<{tag}>" * depth + markup * depth)


def attributes(count: int) -> HostilePage:
    return page("<p " + " ".join(f"a{n}=b" for n in range(count)) + ">x")


def same_attribute(count: int) -> HostilePage:
    return page("<p " + "class=b " * count + ">x")


def crowded_paragraph(count: int) -> HostilePage:
    """As many attributes as pass, on an element that many others follow."""
    return page("<p " + " ".join(f"a{n}" for n in range(1_500)) + ">x" + "<p>y" * count)


def table(rows: int, columns: int) -> HostilePage:
    return page(f"<table>{('<tr>' + '<td>x' * columns) * rows}</table>")


def spans(count: int) -> HostilePage:
    cell = "<td rowspan=1000000000 colspan=1000000000>x"
    return page(f"<table>{('<tr>' + cell * 3) * count}</table>")


def nested_tables(depth: int) -> HostilePage:
    return page("<table><tr><td>x" * depth)


def wide_and_narrow_rows(count: int) -> HostilePage:
    """Every row filled up to the widest would be the square of the page."""
    return page("<table>" + "<tr><td>" * count + "<tr>" + "<td>x" * count + "</table>")


def links(count: int) -> HostilePage:
    return page("".join(f"<a href=/{n}>{n}</a> " for n in range(count)))


def headings(count: int) -> HostilePage:
    return page("".join(f"<h{n % 6 + 1} id=a>h</h{n % 6 + 1}>p" for n in range(count)))


def formatting(depth: int) -> HostilePage:
    """Each paragraph reopens all that is still open: the parser's own way to grow."""
    return page("<b><i><u>" * depth + "<p>x" * depth)


def misnested(count: int) -> HostilePage:
    return page("<b><p></b>" * count + "<a><div></a>" * count)


def frames(depth: int) -> HostilePage:
    inner = "x"
    for _ in range(depth):
        inner = inner.replace("&", "&amp;").replace('"', "&quot;")
        inner = f'<iframe srcdoc="{inner}"></iframe>'
        if len(inner) > 1_000_000:
            break
    return page(inner)


def line(length: int) -> HostilePage:
    return page("<p>" + "x" * length)


# --- text -----------------------------------------------------------------------------------------


def runs(length: int, where: str) -> HostilePage:
    """Each run once: a pattern that goes back over one of them takes too long."""
    texts = (_escaped(_run(text, length)) for text in RUNS.values())
    return page("".join(where.replace("RUN", text) for text in texts))


def markdown_runs(length: int) -> HostilePage:
    text = "\n\n".join(f"{_run(text, length)}b" for text in RUNS.values())
    return HostilePage(f"# Hostile\n\n{text}\n===\n".encode(), MARKDOWN)


def _run(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def entities(count: int) -> HostilePage:
    return page(
        "&amp" * count + "&#x10FFFF;" * count + "&#99999999999" * count + "&unknown;" * count
    )


def bidi(count: int) -> HostilePage:
    return page("<p>" + "\u202e\u2066a\u200b\u200d\ufeff\u0301\u202c" * count)


def script_as_text(count: int) -> HostilePage:
    return page("<script>" + "if (a<b) { '</scr' + 'ipt>' } <!--" * count)


def comments(count: int) -> HostilePage:
    return page("<!-->" * count + "<!--->" * count + "<!-- --!>" * count + "<!--" * count)


def declarations(count: int) -> HostilePage:
    return HostilePage(b"<!DOCTYPE html [<!ENTITY a 'b'>" + b"<!ENTITY a '&a;&a;'>" * count)


# --- bytes ----------------------------------------------------------------------------------------


def cut_characters(count: int) -> HostilePage:
    return HostilePage(b"<title>t</title><main><p>" + b"caf\xc3 \xe2\x82 \xf0\x9f\x92 " * count)


def unmarked_utf16(count: int) -> HostilePage:
    return HostilePage(("<main><p>" + "text " * count).encode("utf-16-le"), "text/html")


def mislabelled(count: int) -> HostilePage:
    body = "<meta charset=utf-8><main><p>" + "дом " * count
    return HostilePage(body.encode("windows-1251"), "text/html; charset=shift_jis")


def nul_bytes(count: int) -> HostilePage:
    return HostilePage(b"<title>t</title><main><p>" + b"a\0<\0p\0>" * count)


def noise(count: int) -> HostilePage:
    return HostilePage(bytes(range(256)) * (count // 256), "text/html")


# --- all of them, in the order of what they attack -----------------------------------------------

Pages = Mapping[str, Callable[[], HostilePage]]

NESTED: Pages = {
    "divisions 100,000 deep": lambda: nested("div", 100_000),
    "spans 100,000 deep": lambda: nested("span", 100_000),
    "closed spans 20,000 deep": lambda: closed("span", 20_000),
    "bold 20,000 deep": lambda: nested("b", 20_000),
    "fonts 20,000 deep": lambda: nested("font", 20_000),
    "unknown elements 20,000 deep": lambda: nested("x-y", 20_000),
    "buttons 20,000 deep": lambda: nested("button", 20_000),
    "vector graphics 20,000 deep": lambda: nested("svg", 20_000),
    "formulas 20,000 deep": lambda: nested("math", 20_000),
    "code 100,000 deep": lambda: nested("pre", 100_000),
    "rules below 50,000 spans": lambda: below("span", 50_000, "<hr>"),
    "ends of nothing below 50,000 spans": lambda: below("span", 50_000, "</x>"),
    "choices below 50,000 spans": lambda: below("span", 50_000, "<option>"),
    "quotes 5,000 deep": lambda: nested("blockquote", 5_000),
    "closed quotes 5,000 deep": lambda: closed("blockquote", 5_000),
    "lists 5,000 deep": lambda: lists(5_000),
    "definitions 4,000 deep": lambda: nested("dl><dd", 4_000),
    "details 4,900 deep": lambda: nested("details", 4_900),
    "tables 2,000 deep": lambda: nested_tables(2_000),
    "noscript 20,000 deep": lambda: nested("noscript", 20_000),
    "templates 10,000 deep": lambda: nested("template", 10_000),
    "selections 20,000 deep": lambda: nested("select><option", 20_000),
    "frames within frames": lambda: frames(100),
    "formatting that is opened again and again": lambda: formatting(3_000),
    "misnested formatting": lambda: misnested(5_000),
}
MANY: Pages = {
    "100,000 attributes": lambda: attributes(100_000),
    "one attribute 100,000 times": lambda: same_attribute(100_000),
    "1,500 attributes of a paragraph": lambda: crowded_paragraph(10_000),
    "a table of 500,000 cells": lambda: table(10_000, 50),
    "a row of 10,000 cells": lambda: table(1, 10_000),
    "10,000 rows of a cell": lambda: table(10_000, 1),
    "cells that span a thousand million": lambda: spans(1_000),
    "10,000 empty rows and a wide one": lambda: wide_and_narrow_rows(10_000),
    "25,000 headings": lambda: headings(25_000),
    "30,000 entities of each kind": lambda: entities(30_000),
    "comments that are none": lambda: comments(20_000),
    "a script that never ends": lambda: script_as_text(50_000),
    "entities declared by the page": lambda: declarations(20_000),
}
BYTES: Pages = {
    "a line of 20 MB": lambda: line(20_000_000),
    "bidirectional and invisible text": lambda: bidi(30_000),
    "characters cut in the middle": lambda: cut_characters(50_000),
    "UTF-16 without a mark": lambda: unmarked_utf16(100_000),
    "a charset that is another": lambda: mislabelled(100_000),
    "NUL bytes": lambda: nul_bytes(10_000),
    "noise": lambda: noise(500_000),
}
