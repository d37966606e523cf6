"""Pages that say "not found" under a status of 200."""

from __future__ import annotations

import re

# The menus of a site count as text; an article about errors is far longer than this.
MAX_TEXT_OF_ERROR_PAGE = 3_000

_PHRASES = """
    page not found; not found; 404 page; file not found; page cannot be found
    page could not be found; page can't be found; page doesn't exist; page does not exist
    page no longer exists; this page could not be found; the page you requested could not be found
    the page you are looking for does not exist; the page you're looking for doesn't exist
    oops! that page can't be found; we couldn't find that page; sorry, this page isn't available
    seite nicht gefunden; seite wurde nicht gefunden; die seite wurde nicht gefunden
    page introuvable; page non trouvée; cette page n'existe pas
    página no encontrada; no se encontró la página
    página não encontrada
    pagina non trovata
    pagina niet gevonden
    sidan hittades inte; sidan kunde inte hittas
    siden blev ikke fundet; siden ble ikke funnet; sivua ei löytynyt
    nie znaleziono strony; strona nie została znaleziona
    stránka nenalezena; stránka nebyla nalezena
    az oldal nem található; pagina nu a fost găsită; sayfa bulunamad\u0131; η σελίδα δεν βρέθηκε
    страница не найдена; сторінку не знайдено
    ページが見つかりません; ページが見つかりませんでした
    页面未找到; 页面不存在; 找不到页面; 找不到頁面
    페이지를 찾을 수 없습니다
    الصفحة غير موجودة; הדף לא נמצא
"""
_ANY_PHRASE = "|".join(re.escape(text.strip()) for text in re.split("[;\n]", _PHRASES.strip()))
# the phrase must be all that a part of the title says: "Not found errors in nginx" is a page
_NOT_FOUND = re.compile(
    r"(?:(?:http\s*)?(?:error\s*)?404(?:\s*error)?\s*[!.]*"
    r"|(?:(?:http\s*)?(?:error\s*)?404(?:\s*error)?\s*[-:.!,(]*\s*)?"
    rf"(?:{_ANY_PHRASE})\s*[)!.。]*(?:\s*\(?404\)?)?)",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s+[-|:·•»«/]\s+|\s*[|·•»«\u2013\u2014]\s*")  # both dashes


def soft_error(title: str | None, headings: tuple[str, ...], text_length: int) -> str | None:
    """Why this page looks like an error page, or None; in doubt None, so that no page is lost."""
    if text_length > MAX_TEXT_OF_ERROR_PAGE:
        return None
    if title and _says_not_found(title):
        return f"the title says not found: {title[:80]}"
    for heading in headings:
        if _says_not_found(heading):
            return f"a heading says not found: {heading[:80]}"
    return None


def _says_not_found(line: str) -> bool:
    line = line.replace("\u2019", "'")
    parts = (line, *_SEPARATOR.split(line))
    return any(_NOT_FOUND.fullmatch(part.strip()) for part in parts)
