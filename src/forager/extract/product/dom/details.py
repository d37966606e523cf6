"""Category path and star rating as the page shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forager.extract.product.dom.view import View
from forager.extract.product.record import Fact, FieldName
from forager.extract.product.wording import alike, category_of, count_of, rating_of

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


_STARS = re.compile(
    r"(\d(?:[.,]\d{1,2})?)\s{0,3}(?:/|out of|von|sur|su|de|av|van|z|из|of)\s{0,3}(5|10)(?!\d)"
    r"|(\d[.,]\d)\s{0,2}(?:stars?|sterne)",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(\d{1,3}(?:[.,\u00a0]\d{3}){1,2}|\d{1,7})\s{0,3}(?:customer |global |verified )?"
    r"(?:reviews?|ratings?"
    r"|bewertungen|rezensionen"
    r"|avis|évaluations|recensioni|voti|reseñas|opiniones|valoraciones|hodnoten|recenz|opinii"
    r"|отзыв|оценок|beoordelingen)",
    re.IGNORECASE,
)


def star_facts(view: View) -> Iterator[Fact]:
    rated = counted = False
    for element in view.elements.ratings[:120]:
        if view.distance(element) > 600 or view.surroundings.of(element.node).elsewhere:
            continue
        text = element.attributes.get("title") or element.attributes.get("aria-label") or ""
        text = " ".join(f"{text} {element.node.text(separator=' ')[:400]}".split())[:200]
        stars = _STARS.search(text)
        if not rated and stars and (value := rating_of(stars[1] or stars[3], stars[2])):
            rated = True
            yield Fact(FieldName.RATING, value, 0.5, "dom:rating")
        count = _COUNT.search(text)
        if not counted and count and (number := count_of(count[1])):
            counted = True
            yield Fact(FieldName.REVIEW_COUNT, number, 0.5, "dom:rating")
        if rated and counted:
            return
