from __future__ import annotations

import pytest

from forager.extract.softerror import soft_error


@pytest.mark.parametrize(
    "line",
    [
        "404",
        "Error 404",
        "404 Not Found",
        "404 - Page not found",
        "404: This page could not be found.",
        "Page Not Found | Example Docs",
        "Example \u2013 Seite nicht gefunden",
        "Oops! That page can\u2019t be found.",
        "Página no encontrada - Ejemplo",
        "Страница не найдена",
        "ページが見つかりません",
        "页面不存在",
        "Page not found (404)",
    ],
)
def test_error_pages(line: str) -> None:
    assert soft_error(line, (), 400) is not None
    assert soft_error("Example", (line,), 400) is not None


@pytest.mark.parametrize(
    "line",
    [
        "Handling 404 Not Found errors in nginx",
        "Why a page was not found",
        "Room 404",
        "HTTP status codes",
        "Lost and found",
        "",
    ],
)
def test_ordinary_pages(line: str) -> None:
    assert soft_error(line, (line,), 400) is None


def test_a_long_page_is_an_article() -> None:
    assert soft_error("404 Not Found", ("404 Not Found",), 8_000) is None
