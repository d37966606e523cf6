"""Requests of a page that are never sent: pictures, fonts, media and trackers."""

from __future__ import annotations

from forager.extract.hosts import host_name, host_of, parent_domains

# as Playwright names them
CONTENT_TYPES = frozenset({"document", "script", "stylesheet", "xhr", "fetch", "other"})
PICTURE_TYPES = frozenset({"image", "font"})
METHODS = frozenset({"GET", "HEAD", "POST"})

TRACKERS = frozenset(
    """
    adnxs.com adobedtm.com adsrvr.org adroll.com amazon-adsystem.com amplitude.com
    analytics.google.com appdynamics.com bat.bing.com bing-int.com bluekai.com braze.com
    bugsnag.com casalemedia.com chartbeat.com clarity.ms clicktale.net cloudflareinsights.com
    cookiebot.com cookielaw.org criteo.com criteo.net crazyegg.com datadoghq-browser-agent.com
    demdex.net didomi.io doubleclick.net facebook.net fullstory.com googleadservices.com
    google-analytics.com googlesyndication.com googletagmanager.com googletagservices.com
    heap.io heapanalytics.com hotjar.com hs-analytics.net hs-scripts.com
    intercom.io intercomcdn.com krxd.net licdn.com logrocket.com logrocket.io
    luckyorange.com matomo.cloud mixpanel.com mouseflow.com mparticle.com newrelic.com
    nr-data.net omtrdc.net onetrust.com optimizely.com outbrain.com parsely.com
    pinimg.com plausible.io posthog.com privacy-center.org quantserve.com
    quantcount.com qualtrics.com rubiconproject.com scorecardresearch.com segment.com
    segment.io sentry.io sentry-cdn.com sc-static.net smartlook.com
    statcounter.com taboola.com tealiumiq.com trustarc.com
    usercentrics.eu visualwebsiteoptimizer.com walkme.com zdassets.com
    """.split()  # noqa: SIM905 - a list that people maintain
)


def refusal(url: str, method: str, kind: str, page: str, *, pictures: bool) -> str | None:
    """Why a request of a page is not sent; None if it may be."""
    if not url.startswith(("https://", "http://")):
        return "scheme"
    if kind not in CONTENT_TYPES and not (pictures and kind in PICTURE_TYPES):
        return kind
    if method not in METHODS:
        return f"method {method}"
    name = host_name(host_of(url))
    # a page of a company that tracks others is still a page
    if name != host_name(host_of(page)) and not TRACKERS.isdisjoint((name, *parent_domains(name))):
        return "tracker"
    return None
