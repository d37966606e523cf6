"""Boilerplate inside the main element: by names that themes share, never by host.

Short blocks such as buttons, labels and notices are recognized by their text.
"""

from __future__ import annotations

import re
from enum import Enum

from forager.extract.text import name_set


class ElementVerdict(Enum):
    """What to do with an element. The value is the rule, as reports name it."""

    KEEP = "kept"
    NEVER = "a control, a frame or a drawing"  # has nothing to read
    DROP = "boilerplate by its name"  # kept if it contains most of the page
    CONTENTS = "a table of contents"  # dropped if its links lead to this page
    HIDDEN = "hidden"  # dropped unless it is a panel that a click would show
    UNSHOWN = "a line of code that the page does not show"
    FORM = "a form"  # dropped unless it wraps real content
    REPEATED = "repeated on other pages"  # on most pages of its source at the same place


_NEVER = name_set(
    "script style noscript template svg canvas object embed audio video dialog button select"
    " textarea input datalist option optgroup progress meter iframe head title"
    " link meta col colgroup frameset applet area noembed noframes xmp plaintext listing"
)
_DROPPED_TAGS = name_set("nav footer menu")
_DROPPED_ROLES = name_set(
    "navigation search contentinfo banner dialog alertdialog menu menubar toolbar button tablist"
    " tooltip doc-pagelist complementary"
)
_STRUCTURAL = frozenset({"html", "body", "main", "tbody", "tr", "thead"})

# words of class names and ids, each complete between blanks: safe only as a whole
_WHOLE_WORDS = name_set(
    # links to a heading itself
    " headerlink hash-link header-anchor heading-anchor heading-link anchor-link anchorjs-link"
    " heading-anchor-link headinglink direct-link section-link permalink permalink-icon"
    " anchor-heading octicon-link sl-anchor-link subheading-anchor header-link doc-anchor"
    " headeranchor docs-heading-anchor-permalink viewcode-link viewcode-back method-permalink"
    # controls and labels of code
    " linenos lineno linenumber linenumbers line-number line-numbers line-numbers-rows lnt ln"
    " gutter hljs-ln-numbers blob-num rouge-gutter code-toolbar-buttons toolbar copybtn"
    " copy-btn copy-button copybutton btn-copy button-copy copy-code copy-code-button"
    " clipboard clipboard-copy btn-clipboard code-copy code-block-header"
    " language-name example-header lang-label code-lang code-language"
    " codeblock-header example-wrap-buttons codeblock__copy test-arrow button-holder"
    " run-button rightside view-source-button"
    " method-click-advice method-source-toggle method-source-code"
    # moving between pages
    " ingroups breadcrumb breadcrumbs breadcrumb-nav wy-breadcrumbs pagination pagination-nav pager"
    " prev-next prevnext prev-next-footer page-nav pagenav page-navigation nav-footer"
    " next-prev footer-navigation footer-nav navheader navfooter nav-buttons related-pages docnav"
    " rst-footer-buttons md-footer navigation navbar navbox navbar-nav sphinxsidebar sidebar"
    " side-bar sidenav side-nav menu submenu topnav subnav bottomnav nav mw-jump-link"
    " mw-editsection jump-to-nav mobile-nav-chapters nav-chapters nav-wrapper nav-wide-wrapper"
    " prev_next previous next-page prev-page out-of-date version-picker version-switcher"
    " versions version-select language-switcher lang-switcher skip-link skip-to-content"
    " skiplink skipnav"
    # about the page
    " edit-this-page theme-edit-this-page edit-page-link edit-page edit-link edit-on-github"
    " view-source sourcelink source-link srclink src-link page-meta page-metadata"
    " page-info page-actions page-tools pagetools article-actions last-updated lastupdated"
    " last-modified last-update theme-last-updated modified-date updated-at article-footer"
    " page-footer doc-footer footer post-footer content-footer site-footer contributors"
    " contributor-list authors-list byline reading-time readtime estimated-time"
    # asking and selling
    " feedback page-feedback doc-feedback docs-feedback feedback-widget feedback-container"
    " feedback-section helpful was-this-helpful page-helpful rating ratings survey vote votes"
    " share sharing share-buttons social social-share social-links social-media newsletter"
    " subscribe subscription signup sign-up cta cta-banner promo promotion advert"
    " advertisement ads ad adsbygoogle sponsor sponsors cookie cookies cookie-banner"
    " cookie-consent cookie-notice consent announcement announcement-bar site-banner comments"
    " comment-list disqus disqus_thread giscus utterances related-posts related-articles"
    " recommended recommendations"
    # for other media, or invisible
    " visually-hidden visuallyhidden sr-only screen-reader-text screen-reader-only a11y-hidden"
    " noprint no-print printonly print-only hidden d-none tooltip tooltiptext tooltip-content"
    " notable-traits"
    " dropdown-panel dropdown-trigger page-menu user-menu wiki-menu pre-footer prefooter"
    " mcwebhelpframesetlink modal popover dropdown dropdown-menu dropdown-content popup"
    " overlay lightbox"
    # wikis
    " catlinks printfooter navigation-not-searchable mw-indicators contentsub sitesub"
    " jump-to-navigation mw-hidden-catlinks noexcerpt ambox-notice metadata"
    # of single generators
    " docutils-footer out-of-band edit-me helpbox feedback-hidden algolia docsearch searchbox"
    " search search-form search-box searchform"
)

# links with the style of buttons ("Learn more", "Start free"), and links to source code
_LEFT_OUT_LINKS = name_set("button btn md-button src link-seesrc")

# parts of class names with the same meaning at any position
_ANYWHERE = re.compile(
    r"breadcrumb|cookie-?(?:banner|consent|bar|notice)|page-?feedback|feedback-?(?:form|widget|box)"
    r"|was-?this-?(?:page-?)?helpful|edit-?this-?page|edit-?page|page-?edit|skip-?to|skip-?(?:link|nav)"
    r"|prev-?(?:and-?)?next|prev(?:ious)?[-_]?next|next-?prev|(?:^|[\s_-])nav-?set(?:top|bottom)"
    r"|pagination|copy-?(?:to-?clipboard|button|btn|code)"
    r"|line-?num(?:ber)?s?(?:$|[\s_-])|last-?updated|last-?modified|social-?(?:share|links|media|icons)"
    r"|share-?(?:button|link|bar)|newsletter|header-?anchor|anchor-?link|hash-?link|heading-?anchor"
    r"|version-?(?:picker|switcher|selector|dropdown|warning)|lang(?:uage)?-?(?:picker|switcher|selector)"
    r"|page-?rating|star-?rating|rating-?(?:widget|stars|container)|side-?bar(?:$|[\s_-])|sidenav"
    r"|(?:^|[\s_-])nav-?(?:bar|box)(?:$|[\s_-])|(?:^|[\s_-])mobile-?(?:menu|nav)|(?:^|[\s_-])feedback(?:$|[\s_-])|visually-?hidden|screen-?reader"
    r"|promo-?(?:banner|box|block)|ad-?(?:slot|container|wrapper|banner)(?:$|\s)|sticky-?(?:nav|header)"
    r"|popup|featured-?(?:article|post|guide)|(?:^|[\s_-])cta(?=$|[\s_-])|upsell|discord|slack-?invite"
    r"|related-?(?:posts|articles|pages|links|guides)|read-?next|up-?next|page-?options|page-?actions"
    r"|article-?(?:actions|tools|share|tags)|(?:^|[\s_-])tags?-?(?:list|cloud)(?:$|\s)"
)
_CONTENTS = re.compile(
    r"(?:^|[\s_-])(?:toc|tocs|tableofcontents|table-?of-?contents|on-?this-?page|in-?this-?(?:article|page)"
    r"|page-?toc|local-?toc|toctree|page-?contents|in-?page-?nav|right-?toc|minitoc|scrollspy|sectlinks)"
    r"(?=$|[\s_-])|tableofcontents|tocwrapper"
    r"|(?:^|\s)(?:contents local|contents topic|topic contents|jump-?links|local-?contents)(?=$|\s)"
)
# class names of wrappers that describe the page: "content has-sidebar with-toc"
_ABOUT_OTHERS = re.compile(r"(?:has|with|no|without|show|hide|is|toggle|js)[-_]|[^\s]*[:\[]")
_PANEL = re.compile(r"tab|panel|collaps|accordion|switch|toggle|variant|option|pane|expand")


def verdict_of(name: str, classes: str, role: str) -> ElementVerdict:
    """The verdict on an element by its tag, classes and role."""
    if name in _NEVER:
        return ElementVerdict.NEVER
    is_kept = name in _STRUCTURAL or role == "main"
    if is_kept or (name in HEADINGS and not _HIDDEN.search(classes)):
        return ElementVerdict.KEEP
    if name == "span" and classes == "boring":  # mdBook: around the lines that matter
        return ElementVerdict.UNSHOWN
    verdict = verdict_of_names(classes.lower()) if classes else ElementVerdict.KEEP
    if name == "a" and not _LEFT_OUT_LINKS.isdisjoint(classes.lower().split()):
        return ElementVerdict.DROP
    if verdict is ElementVerdict.KEEP and (name in _DROPPED_TAGS or role in _DROPPED_ROLES):
        return ElementVerdict.DROP
    return ElementVerdict.FORM if verdict is ElementVerdict.KEEP and name == "form" else verdict


SECTION_CLASS = re.compile(
    r"(?:^|\s)(?:section|sect\d|refsect\d|refsection|refentry|chapter|appendix|level\d)(?=\s|$)"
)
HEADINGS = name_set("h1 h2 h3 h4 h5 h6")
_HIDDEN = re.compile(r"hidden|sr-only|screen-?reader|\btoc")


def verdict_of_names(words: str) -> ElementVerdict:
    """The verdict by class names or an id in lower case."""
    split = words.split()
    if not _WHOLE_WORDS.isdisjoint(split):
        return ElementVerdict.DROP
    words = " ".join(word for word in split if not _is_state(word, split))
    if _CONTENTS.search(words):
        return ElementVerdict.CONTENTS
    return ElementVerdict.DROP if _ANYWHERE.search(words) else ElementVerdict.KEEP


def _is_state(word: str, all_words: list[str]) -> bool:
    """Whether a class describes the state of a page, such as `has-toc` and `sidebar--expanded`.

    A modifier beside the block that it modifies is not one; alone it describes another element.
    """
    if _ABOUT_OTHERS.match(word):
        return True
    block, mark, modifier = word.partition("--")
    return bool(mark) and block not in all_words and modifier in _STATES


_STATES = name_set(
    "active closed collapsed disabled docked enabled expanded fixed hidden left none off on open"
    " opened pinned right shown sticky unpinned visible"
)


def is_semantic(name: str, role: str) -> bool:
    """Whether an element is boilerplate by its tag or role, and not by a class name."""
    return name in _DROPPED_TAGS or role in _DROPPED_ROLES


def is_panel(classes: str, role: str) -> bool:
    """Whether a hidden element is one of several panels, of which a page shows one."""
    return role == "tabpanel" or bool(_PANEL.search(classes.lower()))


MAX_PHRASE = 200

# The first word is looked up before a pattern is tried: nearly every block needs no pattern.
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
    # the links of a page to its neighbors in one line: "top contents ← prev up next →"
    "top contents prev previous next up home index toc start first": (
        r"(?=.*\b(?:prev|previous|next)\b)(?:(?:top|contents|prev|previous|next|up|home|index|toc"
        r"|start|first|last)\b\W*){2,8}",
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

# only a link to the previous or next page
_PAGER = re.compile(r"\[(?:previous|next|prev) [^\]]{1,80}\]\([^)]*\)", re.IGNORECASE)
_FIRST_WORD = re.compile(r"[^\w©]{0,10}([^\W_]+|©)")
_LINKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = {ord("*"): None, ord("`"): None}
_MARKS = "_\\#«»\u2039\u203a←→↑|•· "


_COPYRIGHT = re.compile(r"[^\w©]{0,10}(?:©|copyright|all rights)", re.IGNORECASE)


def is_copyright(markdown: str) -> bool:
    """Whether a block is a copyright notice."""
    return _COPYRIGHT.match(markdown) is not None


def _first_word(markdown: str) -> str:
    start, _, _ = markdown.partition(" ")
    if start.isalpha():  # as most paragraphs begin
        return start
    found = _FIRST_WORD.match(markdown)
    return found[1] if found else ""


def is_boilerplate_phrase(markdown: str, *, one_word: bool = True) -> bool:
    """Whether a block is a phrase such as "Was this page helpful?".

    A single word may be a button, but also the name of a function where names are expected.
    """
    pattern = _BY_FIRST_WORD.get(_first_word(markdown).lower())
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
