"""The path of categories above a product, as its crumbs show it."""

from __future__ import annotations

from collections.abc import Iterator

from forager.extract.product.dom.view import View
from forager.extract.product.fact import Fact, FieldName
from forager.extract.product.wording import alike, category_of

_HOME = frozenset(
    ["home", "homepage", "start", "startseite", "accueil", "inicio", "início", "domů", "domov",
     "etusivu",
     "главная", "головна", "strona główna", "ana sayfa", "ホーム", "トップ", "首頁", "首页", "홈",
     "hem",
     "forside", "hjem", "főoldal", "acasă", "all", "back", "shop"]
)  # fmt: skip


def crumb_facts(view: View) -> Iterator[Fact]:
    for element in view.elements.crumbs[:20]:
        links = [a.text(separator=" ") for a in element.node.css("a, [itemprop=name]")[:30]]
        path = trim(category_of(links), view.page.titles)
        if path:
            yield Fact(FieldName.CATEGORY, path, 0.6, "dom:breadcrumbs")
            return


def trim(path: tuple[str, ...], titles: tuple[str, ...]) -> tuple[str, ...]:
    """Without the home page at its start and the product at its end."""
    names = [n for n in path if any(map(str.isalnum, n))]
    if names and names[0].lower() in _HOME:
        names = names[1:]
    if len(names) > 1 and titles and alike(names[-1], titles[0]) > 0.9 and len(names[-1]) > 12:
        names = names[:-1]
    return tuple(names)
