"""Lists that only say where on their own page things are."""

from __future__ import annotations

from forager.extract.markdown.tokens import Tokens

_MIN_LINKS = 3
_MAX_OTHER_TEXT = 200


def is_contents_list(tokens: Tokens, start: int, end: int) -> bool:
    """Whether a list holds little but links to places of the page itself."""
    links = linked = total = 0
    in_link = False
    for index in range(start + 1, end + 1):
        length = len(tokens.texts[index].strip())
        total += length
        linked += length * in_link
        tag = tokens.tags[index]
        if tag.name == "a":
            if not tag.attributes.get("href", "#").startswith("#"):
                return False
            links += 1
            in_link = True
        elif tag.name == "/a":
            in_link = False
        if total > linked + _MAX_OTHER_TEXT:
            return False
    return links >= _MIN_LINKS and linked >= 0.8 * total
