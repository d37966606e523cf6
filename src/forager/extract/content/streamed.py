"""Pages that a server sends in pieces: React puts late pieces at the end, for a script to move.

`<div hidden id="S:1">` holds what belongs in the place of `<template id="B:1">`; what stands
between that template and the comment `/$` is only shown while waiting.
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

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
