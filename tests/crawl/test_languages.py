"""A crawl of one language: translations are excluded, most before they are fetched."""

from __future__ import annotations

import pytest

from crawl.crawling import Crawls
from crawl.refreshing import SOURCE
from forager.extract.languages import language_of_url
from servers.site import Page, Site, html


def page(title: str, *links: str, lang: str = "en", head: str = "") -> Page:
    made = html(title, links, head=head)
    return Page(
        made.body.replace(b"<html>", f'<html lang="{lang}">'.encode()), headers=made.headers
    )


async def test_translations_are_excluded(crawls: Crawls, site: Site) -> None:
    site.pages = {
        "/docs/": page(
            "Home", "/docs/guide", "/docs/fr/guide", "/docs/pt-br/", "/docs/guide?lang=ja",
            "/docs/traduction", "/docs/handbuch", "/docs/id/7",
            head='<link rel="alternate" hreflang="de-AT" href="/docs/handbuch">'
            '<link rel="alternate" hreflang="x-default" href="/docs/guide">'
            '<link rel="alternate" hreflang="en" href="/docs/guide">',
        ),
        "/docs/guide": page("Guide", lang="en-GB"),
        "/docs/fr/guide": page("Le guide", lang="fr"),
        "/docs/pt-br/": page("O guia", lang="pt-br"),
        "/docs/guide?lang=ja": page("Guide in Japanese", lang="ja"),
        "/docs/traduction": page("Traduction", lang="fr"),
        "/docs/handbuch": page("Handbuch", lang="de"),
        "/docs/id/7": page("Number seven"),
    }  # fmt: skip
    done = await crawls.run(f"{site.url}/docs/", source=SOURCE, language="en")
    assert done.outcomes(site.url) == {
        "/docs/": "fetched",
        "/docs/guide": "fetched",
        "/docs/id/7": "fetched",
        "/docs/fr/guide": "excluded:language",
        "/docs/pt-br/": "excluded:language",
        "/docs/guide?lang=ja": "excluded:language",
        "/docs/traduction": "excluded:language",
    }
    assert done.ledger["out_of_scope_links"] == {"language": 1}
    detail = done.visited[f"{site.url}/docs/fr/guide"].detail
    assert detail == "its language is fr, not en"
    # only the one that nothing but its content gives away
    fetched = {request.target for request in site.log}
    assert not fetched & {"/docs/fr/guide", "/docs/pt-br/", "/docs/guide?lang=ja", "/docs/handbuch"}


async def test_translations_are_reported(crawls: Crawls, site: Site) -> None:
    site.pages = {
        "/": page("Home", "/fr/a", "/de/a", "/a"),
        "/fr/a": page("Le guide", lang="fr"),
        "/de/a": page("Das Handbuch", lang="de"),
        "/a": page("The guide"),
    }
    done = await crawls.run(f"{site.url}/", source=SOURCE)
    assert done.pages(site.url) == {"/", "/a", "/fr/a", "/de/a"}
    assert done.ledger["remarks"]["translations"] == 2


@pytest.mark.parametrize(
    ("url", "language"),
    [
        ("https://fr.example.org/", "fr"),
        ("https://docs.example.org/v2/zh-Hant/a", "zh"),
        ("https://docs.example.org/zh_CN/a", "zh"),
        ("https://docs.example.org/a?hl=ko", "ko"),
        ("https://docs.example.org/it-it/a", "it"),
        # these may be anything
        ("https://docs.example.org/it/a", None),
        ("https://docs.example.org/is/a", None),
        ("https://docs.example.org/go/a", None),
        ("https://docs.example.org/fr", None),
        ("https://docs.example.org/a/b/c/d/fr/x", None),
        ("https://de/a", None),
        ("http://127.0.0.1:8000/a", None),
    ],
)  # fmt: skip
def test_the_language_of_a_url(url: str, language: str | None) -> None:
    assert language_of_url(url) == language
