"""Short blocks that are not content whatever element they stand in: buttons, labels, notices."""

from __future__ import annotations

import re

MAX_PHRASE = 120

_PHRASE = re.compile(
    r"""(?:
      (?:was|is|did)\ (?:this|you\ find\ this)\ (?:(?:page|article|document|section|doc|topic|content|answer
        |information)\ )?(?:helpful|useful|help|helpful\ to\ you).{0,20}
    | (?:rate|print|share|improve|report|edit|download|copy|open|view|bookmark|follow)\ this\ (?:page|article
        |doc|document|topic)(?:\ (?:on|in|as|at)\ .{1,30})?
    | edit\ (?:on|in)\ (?:github|gitlab|bitbucket).{0,20} | edit(?:\ page|\ source)? | improve\ this\ doc
    | (?:copy|view|open)\ (?:as|in)\ (?:markdown|chatgpt|claude|llm|cursor|vs\ ?code).{0,20} | view\ source
    | (?:last|page\ last|this\ page\ was\ last|article\ last)\ (?:updated|modified|edited|reviewed|changed|update)
        (?:\ on|\ at|\ by)?:?\ .{0,100} | last\ (?:updated|modified|edited) | updated\ (?:on\ )?\d.{0,30}
    | (?:on|in)\ this\ (?:page|article|section|topic|guide|document) | table\ of\ contents | page\ contents
    | toggle\ (?:table\ of\ contents|navigation|sidebar|menu).{0,30} | open\ table\ of\ contents.{0,20}
    | (?:back|return|scroll|jump|go)\ to\ (?:the\ )?top | top\ of\ page | skip\ to\ .{3,30} | jump\ to(?:\ .{3,20})?
    | copy(?:\ (?:code|link|page|to\ clipboard|code\ block|url|permalink|snippet))? | copied!? | expand\ (?:code|all
        |description) | show\ (?:more|less|all) | collapse(?:\ all)? | expand
    | (?:previous|next|prev)(?:\ (?:page|topic|section|article|chapter|lesson|up))?(?:\ [»›→])?
    | (?:previous|next)\ (?:chapter|page|topic|section|article|lesson):?\ .{1,80}
    | [«‹←]\ ?(?:previous|prev).{0,60} | (?:next)\ ?[»›→].{0,60} | prev:\ ?.{1,80} | next:\ ?.{1,80}
    | thank(?:s|\ you)\ for\ (?:your\ |the\ )?feedback.{0,60} | (?:send|give|leave|provide|submit)\ (?:us\ )?(?:your\ )?
        feedback.{0,40}
    | (?:open|report|submit|file|raise|create|log)\ (?:a\ |an\ )?(?:issue|bug|problem|correction|pull\ request|docs\ issue)
        (?:\ .{1,40})?
    | (?:sign|log)\ ?(?:in|up|out)(?:\ .{1,20})? | subscribe(?:\ .{1,40})? | share(?:\ on\ .{1,20})? | print | tweet
    | (?:accept|reject)\ (?:all\ )?cookies | cookie\ (?:policy|settings|preferences) | privacy\ policy
    | terms\ of\ (?:use|service) | (?:all\ rights\ reserved.?|©.{0,90}|copyright\ (?:©|\(c\)|\d{4}).{0,90})
    | powered\ by\ .{2,30} | built\ with\ .{2,40} | advertisement | sponsored | loading\.{0,3}…?
    | (?:minutes?|min)\ read | \d+\ ?-?\ ?(?:minutes?|mins?)(?:\ to)?\ read | reading\ time:?.{0,20}
    | \d+\ contributors? | contributors
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_LINKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*_`\\#]")


def is_boilerplate_phrase(markdown: str) -> bool:
    """Whether a block says nothing about its page's subject."""
    if len(markdown) > MAX_PHRASE and not ("](" in markdown and len(markdown) < 5 * MAX_PHRASE):
        return False
    text = _LINKS.sub(r"\1", markdown) if "](" in markdown else markdown
    text = _MARKS.sub("", text).strip()
    return len(text) <= MAX_PHRASE and _PHRASE.fullmatch(text.rstrip(" .:|•·»›→↑")) is not None
