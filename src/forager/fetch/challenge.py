"""Challenge pages: what bot protection answers in place of a page."""

from __future__ import annotations

import re

from forager.fetch.response import Response

# as much of a body as is looked at, and the largest page that can be a challenge
_HEAD = 60_000
_LARGEST = 250_000
# names that only the scripts and forms of bot protection use
_MARKS = re.compile(
    rb"cf-chl-|cf_chl_|/cdn-cgi/challenge-platform/|id=[\"']challenge-form|px-captcha|_pxCaptcha"
    rb"|captcha-delivery\.com|geo\.captcha|Incapsula incident ID|_Incapsula_Resource"
    rb"|/_sec/cp_challenge|ak-challenge|Pardon Our Interruption|/errors/validateCaptcha"
    rb"|<title>\s*(?:Just a moment\.\.\.|Attention Required! \| Cloudflare|Robot Check"
    rb"|Access Denied|Are you a human\?|Bot Verification|Security check|DDoS-Guard)\s*</title>",
    re.IGNORECASE,
)
# a usual page may load these as well, so they count only where there is little else
_WIDGETS = re.compile(
    rb"g-recaptcha|h-captcha|hcaptcha\.com/1/api|challenges\.cloudflare\.com/turnstile"
    rb"|class=[\"'][^\"']{0,40}captcha",
    re.IGNORECASE,
)
_SMALL = 15_000
_REFUSALS = frozenset({401, 403, 405, 429, 503})
_HEADERS = ("cf-mitigated", "x-datadome", "x-px-block")


def is_challenge(response: Response) -> bool:
    """Whether the answer asks for proof that a person is reading it."""
    if response.headers.get("cf-mitigated", "").lower() == "challenge":
        return True
    refused = response.status in _REFUSALS
    if refused and any(response.headers.get(name) for name in _HEADERS):
        return True
    body = response.body
    if not body or len(body) > _LARGEST or not (refused or response.status < 300):
        return False
    head = body[:_HEAD]
    return bool(_MARKS.search(head) or (len(body) < _SMALL and _WIDGETS.search(head)))
