"""What a block is, by its classes: a note, a section, a wrapper that names a language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from forager.extract.content.boilerplate import SECTION_CLASS

_LANGUAGE = re.compile(
    r"(?:^|[\s;])(?:highlight-source-|highlight-text-|language-|lang-|highlight-|brush:\s*|code-"
    r"|syntax-|src-|type-)([a-z0-9+#_.-]+)"
)
# `class="sourceCode python"`, `class="hljs python"`, `class="prettyprint js"`
_AFTER = re.compile(
    r"(?:^|\s)(?:sourcecode|hljs|prettyprint|chroma|syntax|codehilite)\s+([a-z0-9+#]+)"
)
_BARE = re.compile(
    r"(?:^|\s)(rust|python|javascript|typescript|java|kotlin|swift|ruby|php|go|bash|shell|console"
    r"|c|cpp|csharp|css|html|xml|json|yaml|toml|sql|scala|haskell|perl|lua|powershell)(?=\s|$)"
)
_ALIASES = {
    "python3": "python",
    "py": "python",
    "ipython3": "ipython",
    "c++": "cpp",
    "c#": "csharp",
    "shell-session": "console",
    "js-nolint": "js",
    "plain": "",
    "plaintext": "",
    "text": "",
    "txt": "",
    "none": "",
    "default": "",
    "nohighlight": "",
    "no-highlight": "",
    "unknown": "",
    "undefined": "",
    "literal-block": "",
}
# words that follow the same prefixes and name no language
_NOT_LANGUAGES = re.compile(
    r"block|wrapper|container|toolbar|box|snippet|line|lines|header|example|sample|area|title|content"
    r"|group|switcher|picker|selector|tabs?|highlight|inline|body|view|section|scroll|full|fence"
)


@lru_cache(maxsize=1024)
def language_in(classes: str, bare: bool = False) -> str | None:
    """The language that class names name; "" where they say that it is none."""
    classes = classes.lower()
    for pattern in (_LANGUAGE, _AFTER, _BARE) if bare else (_LANGUAGE,):
        for found in pattern.finditer(classes):
            word = found[1].strip(".-_").partition(".")[0]
            if word and not _NOT_LANGUAGES.fullmatch(word.partition("-")[0]):
                return _ALIASES.get(word, word)
    return None


def language_of(attributes: dict[str, str], bare: bool = False) -> str | None:
    """The language that an element claims for the code in it."""
    for name in ("data-lang", "data-language", "lang-name", "data-code-lang", "syntax"):
        if claimed := attributes.get(name):
            word = claimed.strip().lower()
            return _ALIASES.get(word, word) if re.fullmatch(r"[a-z0-9+#_.-]+", word) else None
    classes = attributes.get("class")
    return language_in(classes, bare) if classes else None


class Traits(NamedTuple):
    admonition: bool = False
    section: bool = False  # its id is the anchor of the heading that comes first in it
    language: str | None = None  # of the code in it
    heading: int = 0  # the level of a heading that is called so by its role


PLAIN = Traits()
_ADMONITION = re.compile(
    r"(?:^|\s)(?:admonition|admonition-\w+|theme-admonition|alert|callout|custom-block|notecard|hint"
    r"|note|notes|warning|tip|caution|important|danger|info-box|alert-\w+|starlight-aside"
    r"|markdown-alert|docs-callout|admonitionblock)(?=\s|$)"
)
_NOTES = frozenset({"div", "aside", "section", "details"})


_LEVELS = frozenset("123456")


def traits_of(name: str, attributes: dict[str, str]) -> Traits:
    """What a block is; `PLAIN` itself where it is nothing of that."""
    classes = attributes.get("class", "").lower()
    heading = 0
    if attributes.get("role") == "heading":
        level = attributes.get("aria-level", "")
        heading = int(level) if level in _LEVELS else 2
    found = Traits(
        admonition=name in _NOTES and _ADMONITION.search(classes) is not None,
        section=name == "section" or SECTION_CLASS.search(classes) is not None,
        language=language_of(attributes),
        heading=heading,
    )
    return PLAIN if found == PLAIN else found
