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


def attributes(count: int) -> HostilePage:
    return page("<p " + " ".join(f"a{n}=b" for n in range(count)) + ">x")


def same_attribute(count: int) -> HostilePage:
    return page("<p " + "class=b " * count + ">x")


def elements_with_attributes(count: int) -> HostilePage:
    return page("<p " + " ".join(f"a{n}" for n in range(1_500)) + ">x" * 1 + "<p>y" * count)


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


def run_of(text: str, length: int) -> HostilePage:
    """The same few characters everywhere that text is read."""
    text = (text * (length // len(text) + 1))[:length]
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return HostilePage(
        f"<html lang='{escaped[:1000]}'><title>{escaped}</title>"
        f'<meta name=description content="{escaped}"><link rel=canonical href="{escaped}">'
        f'<main><h1 id="{escaped}">{escaped}</h1><p>{escaped}</p><pre>{escaped}</pre>'
        f'<code>{escaped}</code><a href="{escaped}">{escaped}</a><table><tr><td>{escaped}</table>'
        f"<p class='price sku stock brand rating'>{escaped}</p><img alt=\"{escaped}\" src=x>"
        f"<ul><li>{escaped}</ul></main>".encode(),
        HTML,
    )


def markdown_run(text: str, length: int) -> HostilePage:
    return HostilePage((text * (length // len(text) + 1))[:length].encode(), MARKDOWN)


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


PAGES: Mapping[str, Callable[[], HostilePage]] = {
    "divisions 100,000 deep": lambda: nested("div", 100_000),
    "spans 100,000 deep": lambda: nested("span", 100_000),
    "closed spans 100,000 deep": lambda: closed("span", 100_000),
    "bold 100,000 deep": lambda: nested("b", 100_000),
    "fonts 100,000 deep": lambda: nested("font", 100_000),
    "unknown elements 100,000 deep": lambda: nested("x-y", 100_000),
    "buttons 100,000 deep": lambda: nested("button", 100_000),
    "vector graphics 50,000 deep": lambda: nested("svg", 50_000),
    "formulas 50,000 deep": lambda: nested("math", 50_000),
    "quotes 5,000 deep": lambda: nested("blockquote", 5_000),
    "closed quotes 5,000 deep": lambda: closed("blockquote", 5_000),
    "lists 5,000 deep": lambda: lists(5_000),
    "definitions 4,000 deep": lambda: nested("dl><dd", 4_000),
    "details 4,900 deep": lambda: nested("details", 4_900),
    "100,000 attributes": lambda: attributes(100_000),
    "one attribute 100,000 times": lambda: same_attribute(100_000),
    "1,500 attributes of a paragraph": lambda: elements_with_attributes(10_000),
    "a table of 500,000 cells": lambda: table(10_000, 50),
    "a row of 200,000 cells": lambda: table(1, 200_000),
    "200,000 rows of a cell": lambda: table(200_000, 1),
    "cells that span a thousand million": lambda: spans(1_000),
    "tables 2,000 deep": lambda: nested_tables(2_000),
    "10,000 empty rows and a wide one": lambda: wide_and_narrow_rows(10_000),
    "1,000,000 links": lambda: links(1_000_000),
    "100,000 headings": lambda: headings(100_000),
    "formatting that is opened again and again": lambda: formatting(3_000),
    "misnested formatting": lambda: misnested(50_000),
    "frames within frames": lambda: frames(100),
    "noscript 50,000 deep": lambda: nested("noscript", 50_000),
    "templates 20,000 deep": lambda: nested("template", 20_000),
    "selections 50,000 deep": lambda: nested("select><option", 50_000),
    "a line of 20 MB": lambda: line(20_000_000),
    "400,000 entities": lambda: entities(100_000),
    "bidirectional and invisible text": lambda: bidi(200_000),
    "a script that never ends": lambda: script_as_text(100_000),
    "comments that are none": lambda: comments(50_000),
    "entities declared by the page": lambda: declarations(100_000),
    "characters cut in the middle": lambda: cut_characters(300_000),
    "UTF-16 without a mark": lambda: unmarked_utf16(300_000),
    "a charset that is another": lambda: mislabelled(300_000),
    "NUL bytes": lambda: nul_bytes(300_000),
    "noise": lambda: noise(1_000_000),
}  # fmt: skip
