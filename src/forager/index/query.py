"""Queries of the engine: what a user types, as the engine's own simple query syntax."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

MAX_CHARACTERS = 500
# phrases, alternatives and exclusions; other signs of the syntax are plain text
_FLAGS = "PHRASE|OR|NOT|PRECEDENCE|WHITESPACE"
_SIGNS = str.maketrans("|()", "   ")
_PIECE = re.compile(r'(-?"[^"]*")|(\S+)')
# of more than three words, three quarters are enough
_MOST_WORDS = "3<75%"


def words_query(typed: str, fields: Sequence[str]) -> Json:
    """Find entries by words, "phrases", -without, and `or` between alternatives.

    All words must match, in any of the fields; of a longer query without signs, most of them.
    """
    pieces = [phrase or word for phrase, word in _PIECE.findall(typed[:MAX_CHARACTERS])]
    # in lower case, it is an operator between single terms: "insert or update a row" is a sentence
    operators = ("OR", "or") if all(each.lower() == "or" for each in pieces[1::2]) else ("OR",)
    alternatives: list[list[str]] = [[]]
    for piece in pieces:
        if piece in operators:
            alternatives.append([])
        else:
            alternatives[-1].append(_piece(piece))
    text = " | ".join(f"({' '.join(each)})" for each in alternatives if each)
    is_plain = not any(sign in text for sign in ('"', " -", "(-", "|"))
    return {
        "simple_query_string": {
            "query": text,
            "fields": list(fields),
            "flags": _FLAGS,
            **(
                {"default_operator": "or", "minimum_should_match": _MOST_WORDS}
                if is_plain
                else {"default_operator": "and"}
            ),
        }
    }


def _piece(piece: str) -> str:
    plain = piece.translate(_SIGNS)
    # an option of a command is not an exclusion
    return f'"{plain}"' if piece.startswith("--") else plain


def all_of(query: Json, filters: Sequence[Mapping[str, Any]]) -> Json:
    return {"bool": {"must": [query], "filter": list(filters)}}
