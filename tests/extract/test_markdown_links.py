from __future__ import annotations

import re
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.markdown.links import relative_links

PAGE = "https://docs.example.org/guide/start/install.html?v=2"


@pytest.mark.parametrize(
    ("url", "written"),
    [
        (f"{PAGE}#linux", "#linux"),
        ("https://docs.example.org/guide/start/use.html#a", "use.html#a"),
        ("https://docs.example.org/guide/start/", "/guide/start/"),
        ("https://docs.example.org/guide/start/inst.html?v=22222#a", "inst.html?v=22222#a"),
        ("https://docs.example.org/guide/", "../"),
        ("https://docs.example.org/api/list.html?x=1", "/api/list.html?x=1"),
        ("https://docs.example.org", "https://docs.example.org"),
        ("https://docs.example.org/guide/start/a:b", "/guide/start/a:b"),
        ("https://other.example.org/guide/start/use.html", None),
        ("http://docs.example.org/guide/start/use.html", None),
        ("https://docs.example.org:8443/guide/", None),
        ("https://[broken/x", None),
    ],
)
def test_links_are_relative_to_their_page(url: str, written: str | None) -> None:
    assert relative_links(f"See [a]({url}), ![b]({url}).", PAGE) == (
        f"See [a]({written or url}), ![b]({written or url})."
    )


@pytest.mark.parametrize(
    "markdown",
    [
        "`[a](https://docs.example.org/x)`",
        "``a ` [a](https://docs.example.org/x)``",
        "```md\n[a](https://docs.example.org/x)\n``` not the end\n[b](https://docs.example.org/x)\n```",
        "- text\n\n  ~~~\n  [a](https://docs.example.org/x)\n  ~~~\n",
        "https://docs.example.org/x",
    ],
)
def test_code_and_text_keep_their_urls(markdown: str) -> None:
    assert relative_links(markdown, PAGE) == markdown


def test_links_after_code_are_rewritten() -> None:
    markdown = "```\n[a](https://docs.example.org/x)\n```\nA ` b [c](https://docs.example.org/x)\n"

    assert relative_links(markdown, PAGE).endswith("```\nA ` b [c](/x)\n")


def test_many_backticks_take_linear_time() -> None:
    text = " ".join("`" * (1 + n % 300) for n in range(20_000))

    assert len(relative_links(text, PAGE)) == len(text)


_PATH = st.text("ab.:/?#=%", max_size=12)


@given(_PATH, _PATH)
def test_relative_links_lead_to_the_same_page(page: str, target: str) -> None:
    base, url = f"https://docs.example.org/{page}", f"https://docs.example.org/{target}"

    [written] = re.findall(r"\]\((.*)\)", relative_links(f"[a]({url})", base))

    assert url in (written, urljoin(base, written))
    assert len(written) <= len(url)
