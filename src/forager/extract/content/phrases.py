"""Short blocks that are not content whatever element they stand in: buttons, labels, notices."""

from __future__ import annotations

import re

MAX_PHRASE = 200

# The first word is looked up before a pattern is tried: nearly every block is done with then.
_PHRASES: dict[str, tuple[str, ...]] = {
    "was is did": (
        r"(?:was|is|did) (?:this|you find this) (?:(?:page|article|document|section|doc|topic"
        r"|content|answer|information|guide) )?(?:helpful|useful|help|helpful to you).{0,20}",
    ),
    "rate print share improve report edit download copy open view bookmark follow": (
        r"\w+ this (?:page|article|doc|document|topic)(?: (?:on|in|as|at) .{1,30})?",
    ),
    "edit improve": (
        r"edit (?:on|in) (?:github|gitlab|bitbucket).{0,20}",
        r"edit(?: page| source)?|improve this doc",
    ),
    "copy view open": (
        r"\w+ (?:as|in) (?:markdown|chatgpt|claude|llm|cursor|vs ?code).{0,20}",
        r"view source|open table of contents.{0,20}",
        r"copy(?: (?:code|link|page|to clipboard|code block|url|permalink|snippet))?",
    ),
    "last page this article updated": (
        r"(?:last|page last|this page was last|article last)"
        r" (?:updated|modified|edited|reviewed|changed|update)(?: on| at| by)?:?(?: .{0,160})?",
        r"updated (?:on )?\d.{0,30}|page contents",
    ),
    "on in table toggle": (
        r"(?:on|in) this (?:page|article|section|topic|guide|document)|table of contents",
        r"toggle (?:table of contents|navigation|sidebar|menu).{0,30}",
    ),
    "back return scroll jump go top skip": (
        r"(?:back|return|scroll|jump|go) to (?:the )?top|top of page",
        r"skip to .{3,30}|jump to(?: .{3,20})?",
    ),
    "copied expand show collapse": (
        r"copied!?|expand(?: (?:code|all|description))?|collapse(?: all)?|show (?:more|less|all)",
    ),
    "previous next prev": (
        r"(?:previous|next|prev)(?: (?:page|topic|section|article|chapter|lesson|up))?",
        r"(?:previous|next) (?:chapter|page|topic|section|article|lesson):? .{1,80}",
        r"(?:prev|next|previous): ?.{1,80}",
    ),
    "thanks thank send give leave provide submit": (
        r"thank(?:s| you) for (?:your |the )?feedback.{0,60}",
        r"\w+ (?:us )?(?:your )?feedback.{0,40}",
    ),
    "open report submit file raise create log": (
        r"\w+ (?:a |an )?(?:issue|bug|problem|correction|pull request|docs issue)(?: .{1,40})?",
    ),
    "sign log subscribe share print tweet signup login": (
        r"(?:sign|log) ?(?:in|up|out)|subscribe(?: .{1,40})?|share(?: on .{1,20})?|print|tweet",
    ),
    "accept reject cookie privacy terms": (
        r"(?:accept|reject) (?:all )?cookies|cookie (?:policy|settings|preferences)",
        r"privacy policy|terms of (?:use|service)",
    ),
    "all © copyright powered built": (
        r"all rights reserved|©.{0,90}|copyright (?:©|\(c\)|\d{4}).{0,90}",
        r"powered by .{2,30}|built with .{2,40}",
    ),
    "advertisement sponsored loading reading contributors feedback": (
        r"advertisement|sponsored|loading\.{0,3}|reading time:?.{0,20}|contributors|feedback",
    ),
}
_PATTERNS: dict[str, list[str]] = {}
for _first_words, _patterns in _PHRASES.items():
    for _word in _first_words.split():
        _PATTERNS.setdefault(_word, []).extend(_patterns)
_BY_FIRST_WORD = {
    word: re.compile("|".join(patterns), re.IGNORECASE) for word, patterns in _PATTERNS.items()
}
_BY_FIRST_WORD |= dict.fromkeys(
    map(str, range(100)),
    re.compile(r"\d+ ?-?(?:minutes?|mins?)(?: to)? read|\d+ contributors?", re.IGNORECASE),
)

# nothing but a link to the page before or after this one
_PAGER = re.compile(r"\[(?:previous|next|prev) [^\]]{1,80}\]\([^)]*\)", re.IGNORECASE)
_FIRST_WORD = re.compile(r"[^\w©]{0,10}([^\W_]+|©)")
_LINKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = {ord("*"): None, ord("`"): None}
_MARKS = "_\\#«»\u2039\u203a←→↑|•· "


_COPYRIGHT = re.compile(r"[^\w©]{0,10}(?:©|copyright|all rights)", re.IGNORECASE)


def is_copyright(markdown: str) -> bool:
    """Whether a block is a notice of copyright."""
    return _COPYRIGHT.match(markdown) is not None


def is_boilerplate_phrase(markdown: str, *, one_word: bool = True) -> bool:
    """Whether a block says nothing about its page's subject.

    One word may be a button, but also the name of a function where names are expected.
    """
    first = _FIRST_WORD.match(markdown)
    pattern = _BY_FIRST_WORD.get(first[1].lower()) if first else None
    if pattern is None:
        return False
    if _PAGER.fullmatch(markdown):
        return True
    if "](" in markdown and len(markdown) < 5 * MAX_PHRASE:
        markdown = _LINKS.sub(r"\1", markdown)
    if len(markdown) > MAX_PHRASE:
        return False
    text = markdown.translate(_EMPHASIS).strip(_MARKS)
    if not one_word and " " not in text:
        return False
    return pattern.fullmatch(text.rstrip(" .:")) is not None
