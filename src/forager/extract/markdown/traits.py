"""What a block is, by its classes: a note, a section, a wrapper that names a language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from forager.extract.content.boilerplate import SECTION_CLASS
from forager.extract.markdown.code import language_of
from forager.extract.markdown.tags import Attributes


class Traits(NamedTuple):
    admonition: bool
    section: bool  # its id is the anchor of the heading that comes first in it
    language: str | None  # of the code in it


_ADMONITION = re.compile(
    r"(?:^|\s)(?:admonition|admonition-\w+|theme-admonition|alert|callout|custom-block|notecard|hint"
    r"|note|notes|warning|tip|caution|important|danger|info-box|alert-\w+|starlight-aside"
    r"|markdown-alert|docs-callout|admonitionblock)(?=\s|$)"
)
_NOTES = frozenset({"div", "aside", "section", "details"})


@lru_cache(maxsize=2048)
def _by_classes(name: str, classes: str) -> Traits:
    lower = classes.lower()
    return Traits(
        admonition=name in _NOTES and _ADMONITION.search(lower) is not None,
        section=name == "section" or SECTION_CLASS.search(lower) is not None,
        language=language_of({"class": classes}),
    )


def traits_of(name: str, attributes: Attributes) -> Traits:
    traits = _by_classes(name, attributes.get("class", ""))
    if traits.language is None and (len(attributes) > 1 or "class" not in attributes):
        return traits._replace(language=language_of(attributes))
    return traits
