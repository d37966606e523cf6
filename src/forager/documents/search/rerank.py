"""The second stage for questions: the best sections, compared with the question word by word.

An answer says "build" where the question says "make". Each word of the question is compared with
the nearest word of a section, and rare words count more than common ones.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from forager.documents.search.embedding import StaticModel
from forager.documents.search.scopes import RankedGenerations
from forager.documents.search.score import Candidate, WeightedTerms, name_pages
from forager.documents.search.snippets import plain_text

# sections that are compared, and of how many pages
MAX_SECTIONS = 60
MAX_PAGES = 30
# the weight of this stage beside the first one, whose scores are 0 to 1
WEIGHT = 0.5
# the similarity of unrelated words
_UNRELATED = 0.35
# what a word in the text counts, and what one in the heading counts more
_IN_TEXT = 0.8
_IN_HEADING = 0.3
# the words of identifiers too: "set", "visible" of set_visible
_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+|\d+")


async def rerank(
    found: Sequence[Candidate], scopes: Sequence[RankedGenerations], model: StaticModel
) -> list[Candidate]:
    """The candidates with the best ones in a new order; their scores are changed."""
    chosen = _best(found)
    if not chosen:
        return list(found)
    name_pages(chosen)
    terms = {source: terms for scope in scopes for source, terms in scope.terms_by_source.items()}
    fits = {source: fit for scope in scopes for source, fit in scope.fits.items()}
    await asyncio.to_thread(_add_closeness, chosen, terms, fits, model)
    return sorted(found, key=lambda each: -each.score)


def _best(found: Sequence[Candidate]) -> list[Candidate]:
    """The best sections: the first ones of each page, then further ones of the same pages."""
    pages: dict[int, list[Candidate]] = {}
    for each in found:
        if each.document_id in pages or len(pages) < MAX_PAGES:
            pages.setdefault(each.document_id, []).append(each)
    ranked = [(place, each) for page in pages.values() for place, each in enumerate(page)]
    return [each for _, each in sorted(ranked, key=lambda pair: pair[0])][:MAX_SECTIONS]


def _add_closeness(
    chosen: Sequence[Candidate],
    terms: Mapping[str, WeightedTerms],
    fits: Mapping[str, float],
    model: StaticModel,
) -> None:
    values = [
        fits.get(source := each.place.source_id, 1.0) * _closeness(each, terms[source], model)
        for each in chosen
    ]
    low, high = min(values), max(values)
    for each, value in zip(chosen, values, strict=True):
        each.score += WEIGHT * (value - low) / (high - low) if high > low else 0.0


def _closeness(candidate: Candidate, terms: WeightedTerms, model: StaticModel) -> float:
    """How near the words of a section come to those of the question, from 0 on."""
    place = candidate.place
    wanted = model.word_vectors([text.lower() for text in terms.texts])
    heading = _nearest(wanted, f"{candidate.page_name} {place.parent} {place.heading}", model)
    text = _nearest(wanted, plain_text(place.beginning), model)
    pairs = zip(terms.rarity, heading, text, strict=True)
    total = sum(
        rarity * (max(above, _IN_TEXT * below) + _IN_HEADING * above)
        for rarity, above, below in pairs
    )
    return total / sum(terms.rarity)


def _nearest(wanted: Any, text: str, model: StaticModel) -> list[float]:
    """For each wanted word, the similarity of the nearest word of a text, from 0 to 1."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(text) if len(word) > 1))
    if not words:
        return [0.0] * len(wanted)
    similarity = (wanted @ model.word_vectors(words).T).max(axis=1)
    return [max(0.0, (float(each) - _UNRELATED) / (1 - _UNRELATED)) for each in similarity]
