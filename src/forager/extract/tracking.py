"""Query parameters that say where a visitor came from and never what is shown.

Only names that belong to one well-known sender are listed. Names that some site may use for
content (`ref`, `source`, `campaign`, `from`) are not: a URL kept twice costs one fetch, a
parameter wrongly removed loses a page.
"""

from __future__ import annotations

_PREFIXES = (
    "utm_",  # Google Analytics, and everybody after it
    "mtm_",  # Matomo
    "pk_",  # Piwik, as Matomo was called
    "hsa_",  # HubSpot ads
)

_NAMES = frozenset(
    {
        "gclid",  # Google Ads, and the next five
        "gclsrc",
        "dclid",
        "gbraid",
        "wbraid",
        "gad_source",
        "srsltid",  # Google Merchant Center
        "_ga",  # Google Analytics across domains, and the next
        "_gl",
        "fbclid",  # Facebook
        "msclkid",  # Microsoft Advertising
        "yclid",  # Yandex, and the next two
        "ymclid",
        "_openstat",
        "twclid",  # X
        "ttclid",  # TikTok
        "igshid",  # Instagram
        "li_fat_id",  # LinkedIn
        "epik",  # Pinterest
        "rdt_cid",  # Reddit
        "sccid",  # Snapchat
        "mc_cid",  # Mailchimp, and the next
        "mc_eid",
        "_hsenc",  # HubSpot, and the next
        "_hsmi",
        "mkt_tok",  # Marketo
        "vero_id",  # Vero
        "oly_anon_id",  # Omeda, and the next
        "oly_enc_id",
        "wickedid",  # Wicked Reports
        "irclickid",  # Impact
    }
)


def is_tracking(name: str) -> bool:
    """Whether a query parameter of this name only tracks; case does not matter."""
    name = name.lower()
    return name in _NAMES or name.startswith(_PREFIXES)


def tracking_names(query: str) -> list[str]:
    """The names of the tracking parameters in a query, in order."""
    names = (part.partition("=")[0] for part in query.split("&"))
    return [name for name in names if is_tracking(name)]


def without_tracking(query: str) -> str:
    """The query without its tracking parameters; the others keep order and spelling."""
    return "&".join(part for part in query.split("&") if not is_tracking(part.partition("=")[0]))
