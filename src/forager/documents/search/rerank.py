"""The second stage for questions: the best sections, compared with the question word by word.

An answer says "build" where the question says "make". Each word of the question is compared with
the nearest word of a section by the model and by a list of synonyms; rare words count more than
common ones. Of several sources, those with several good pages come first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from forager.documents.search.embedding import StaticModel
from forager.documents.search.scopes import RankedGenerations
from forager.documents.search.score import Candidate, WeightedTerms, name_pages, stem, tells_changes
from forager.documents.search.snippets import plain_text
from forager.documents.search.synonyms import is_vague, synonyms

# sections that are compared, and of how many pages
MAX_SECTIONS = 60
MAX_PAGES = 30
# the similarity of unrelated words
_UNRELATED = 0.35
# the similarity of a synonym, and of a word with another ending
_SYNONYM = 0.75
_SAME = 0.95
# what a word in the text counts, and what one in the heading counts more
_IN_TEXT = 0.8
_IN_HEADING = 0.3
# the factor of the weight of words that say little about a subject
_VAGUE = 0.5
# pages of a source whose mean score supports each of them, and the weight of the mean
_SUPPORTING = 3
_SUPPORT = 0.3
# the words of identifiers too: "set", "visible" of set_visible
_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+|\d+")


@dataclass(frozen=True, slots=True)
class StageWeights:
    """The weight of each signal, from 0 to 1, beside the score of the first stage, 0 to 1."""

    # how near the words of the section come to those of the question
    words: float = 0.8
    # how near the word does that is farthest from the section
    farthest: float = 0.2
    # how near the title of the page comes to the question
    title: float = 0.2
    # the first section of a page
    lead: float = 0.15
    # no section about the changes of a version
    lasting: float = 0.1


WEIGHTS = StageWeights()


async def rerank(
    found: Sequence[Candidate], scopes: Sequence[RankedGenerations], model: StaticModel
) -> list[Candidate]:
    """The candidates with the best ones in a new order; their scores are changed."""
    chosen = _best(found)
    if not chosen:
        return list(found)
    name_pages(chosen)
    terms = {
        source: _without_vague(terms)
        for scope in scopes
        for source, terms in scope.terms_by_source.items()
    }
    fits = {source: fit for scope in scopes for source, fit in scope.fits.items()}
    await asyncio.to_thread(_add_signals, chosen, terms, fits, model)
    ranked = sorted(found, key=lambda each: -each.score)
    if len(terms) > 1:
        _support_sources(ranked)
        ranked.sort(key=lambda each: -each.score)
    return ranked


def _without_vague(terms: WeightedTerms) -> WeightedTerms:
    """The terms with less weight for words that say little, such as "several" or "different"."""
    weights = [
        weight * (_VAGUE if is_vague(text.lower()) else 1.0)
        for text, weight in zip(terms.texts, terms.rarity, strict=True)
    ]
    return replace(terms, rarity=weights)


def _support_sources(ranked: Sequence[Candidate]) -> None:
    """Raise the scores of sources with several good pages; one page may match by chance."""
    best: dict[str, dict[int, float]] = {}
    for each in ranked:
        pages = best.setdefault(each.place.source_id, {})
        if len(pages) < _SUPPORTING:
            pages.setdefault(each.document_id, each.score)
    for each in ranked:
        pages = best[each.place.source_id]
        each.score += _SUPPORT * sum(pages.values()) / _SUPPORTING


def _best(found: Sequence[Candidate]) -> list[Candidate]:
    """The best sections: the first ones of each page, then further ones of the same pages."""
    pages: dict[int, list[Candidate]] = {}
    for each in found:
        if each.document_id in pages or len(pages) < MAX_PAGES:
            pages.setdefault(each.document_id, []).append(each)
    ranked = [(place, each) for page in pages.values() for place, each in enumerate(page)]
    return [each for _, each in sorted(ranked, key=lambda pair: pair[0])][:MAX_SECTIONS]


def _add_signals(
    chosen: Sequence[Candidate],
    terms: Mapping[str, WeightedTerms],
    fits: Mapping[str, float],
    model: StaticModel,
) -> None:
    """Add each signal to the scores, on a scale from 0 for the worst section to 1 for the best."""
    titles = _title_similarities(chosen, model)
    wanted = dict.fromkeys(text for of_source in terms.values() for text in of_source.texts)
    similarities = _Similarities(chosen, list(wanted), model)
    signals = [
        _signals(each, terms[each.place.source_id], titles[each.page_name], similarities)
        for each in chosen
    ]
    fit = [fits.get(each.place.source_id, 1.0) for each in chosen]
    for name in (field.name for field in fields(WEIGHTS)):
        values = [factor * getattr(each, name) for factor, each in zip(fit, signals, strict=True)]
        low, high = min(values), max(values)
        weight = getattr(WEIGHTS, name) / (high - low) if high > low else 0.0
        for each, value in zip(chosen, values, strict=True):
            each.score += weight * (value - low)


def _title_similarities(chosen: Sequence[Candidate], model: StaticModel) -> dict[str, float]:
    titles = list({each.page_name for each in chosen})
    question, *vectors = model.vectors([chosen[0].query.typed, *titles])
    return {name: float(vector @ question) for name, vector in zip(titles, vectors, strict=True)}


def _signals(
    candidate: Candidate, terms: WeightedTerms, title: float, similarities: _Similarities
) -> StageWeights:
    """The signals of a section, each from 0 on."""
    heading, text = similarities.of(candidate, terms)
    best = [max(above, _IN_TEXT * below) for above, below in zip(heading, text, strict=True)]
    values = (value + _IN_HEADING * above for value, above in zip(best, heading, strict=True))
    return StageWeights(
        words=terms.share(values),
        farthest=min(best),
        title=title,
        lead=float(candidate.position == 0),
        lasting=float(not tells_changes(candidate)),
    )


class _Similarities:
    """How near each word of a question comes to the words of headings and texts, from 0 to 1.

    All words are compared at once: a call for each section takes three times as long.
    """

    def __init__(
        self, chosen: Sequence[Candidate], wanted: Sequence[str], model: StaticModel
    ) -> None:
        import numpy

        # the first column is that of no word
        columns: dict[str, int] = {"": 0}
        places: list[int] = []
        starts: list[int] = []
        self._texts: dict[tuple[int, int], int] = {}
        for each in chosen:
            place = each.place
            self._texts[each.document_id, each.position] = len(starts)
            heading = f"{each.page_name} {place.parent} {place.heading}"
            for text in (heading, plain_text(place.beginning)):
                starts.append(len(places))
                places.append(0)
                words = {word.lower() for word in _WORD.findall(text) if len(word) > 1}
                places += [columns.setdefault(word, len(columns)) for word in words]
        self._rows = {text: row for row, text in enumerate(wanted)}
        matrix = _similarities([text.lower() for text in wanted], list(columns)[1:], model)
        self._nearest = numpy.maximum.reduceat(matrix[:, places], starts, axis=1)

    def of(self, candidate: Candidate, terms: WeightedTerms) -> tuple[list[float], list[float]]:
        """For each term, that of the nearest word of the heading, and of the text."""
        rows = [self._rows[text] for text in terms.texts]
        place = self._texts[candidate.document_id, candidate.position]
        above, below = self._nearest[rows, place : place + 2].T.tolist()
        return above, below


def _similarities(wanted: Sequence[str], words: Sequence[str], model: StaticModel) -> Any:
    """The similarity of each wanted word (rows) to no word and to each word, from 0 to 1."""
    import numpy

    similar = numpy.zeros((len(wanted), len(words) + 1), numpy.float32)
    if not wanted or not words:
        return similar
    # not a product of matrices: threads would take longer to start than to multiply
    products = numpy.einsum("ik,jk->ij", model.word_vectors(wanted), model.word_vectors(words))
    similar[:, 1:] = (products - _UNRELATED) / (1 - _UNRELATED)
    known: dict[str, list[tuple[int, float]]] = {}
    for row, text in enumerate(wanted):
        for other in synonyms(text):
            known.setdefault(other, []).append((row, _SYNONYM))
        known.setdefault(stem(text), []).append((row, _SAME))
    for column, word in enumerate(words, 1):
        for row, value in known.get(stem(word), ()):
            similar[row, column] = max(similar[row, column], value)
    return numpy.maximum(similar, 0)
