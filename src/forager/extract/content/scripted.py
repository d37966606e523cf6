"""Pages that need a script: empty until it has run, or sent in pieces for it to put in place."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_TEXT_OF_SHELL = 300

# where the common frameworks put the application
_ROOTS = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #q-app, #svelte, #app-root, #react-root, #main-app,"
    " app-root, [ng-app], [data-reactroot], [ng-version], flutter-view"
)
_ASKS_FOR_JAVASCRIPT = re.compile(r"java\s?script", re.IGNORECASE)

_PLACEHOLDER = re.compile(
    r"(?:(?:now |page |still )?(?:loading|initiali[sz]ing|please wait)[\w ,]{0,30})?[.\u2026\s]*",
    re.IGNORECASE,
)


def needs_javascript(tree: LexborHTMLParser, text_length: int, scripts: int, noscript: str) -> bool:
    """Little text, scripts, and either a message that asks for them or a framework's root."""
    if text_length > MAX_TEXT_OF_SHELL or not scripts:
        return False
    if _ASKS_FOR_JAVASCRIPT.search(noscript):
        return True
    root = tree.css_first(_ROOTS)
    # a root that already holds text was rendered on the server: a short page, not a shell
    return root is not None and _PLACEHOLDER.fullmatch(root.text(strip=True)) is not None


# --- streamed pages -------------------------------------------------------------------------

# React puts late pieces at the end of a page: `<div hidden id="S:1">` holds what belongs in the
# place of `<template id="B:1">`; what stands between that template and the comment `/$` is only
# shown while waiting.
STREAMED = '<template id="B:'  # what a page with such pieces holds
MAX_PIECES = 500


def place_streamed_pieces(tree: LexborHTMLParser) -> None:
    """Move late pieces to where they belong, as the page's script would have done."""
    places = {node.id: node for node in tree.css('template[id^="B:"]')[:MAX_PIECES]}
    if not places:
        return
    for piece in tree.css('div[hidden][id^="S:"]')[:MAX_PIECES]:
        place = places.get(f"B:{(piece.id or '')[2:]}")
        if place is not None:
            _remove_waiting(place)
            del piece.attrs["hidden"]
            place.insert_before(piece)
            piece.remove()


def _remove_waiting(place: LexborNode) -> None:
    following = place.next
    for _ in range(1000):
        if following is None or (following.is_comment_node and following.comment_content == "/$"):
            return
        after = following.next
        following.remove()
        following = after
