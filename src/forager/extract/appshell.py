"""Pages that are empty until JavaScript has run."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

MAX_TEXT_OF_SHELL = 300

# where the common frameworks put the application
_ROOTS = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #q-app, #svelte, #app-root, #react-root, #main-app,"
    " app-root, [ng-app], [data-reactroot], [ng-version], flutter-view"
)
_ASKS_FOR_JAVASCRIPT = re.compile(r"java\s?script", re.IGNORECASE)


def needs_javascript(tree: LexborHTMLParser, text_length: int, scripts: int, noscript: str) -> bool:
    """Little text, scripts, and either a message that asks for them or a framework's root."""
    if text_length > MAX_TEXT_OF_SHELL or not scripts:
        return False
    if _ASKS_FOR_JAVASCRIPT.search(noscript):
        return True
    root = tree.css_first(_ROOTS)
    # a root that already holds text was rendered on the server: a short page, not a shell
    return root is not None and not root.text(strip=True)
