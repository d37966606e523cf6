"""Decides the outcome of a URL from its response or error."""

from __future__ import annotations

from dataclasses import dataclass, replace

from forager.backoff import backoff
from forager.crawl.extraction.pool import Extracted
from forager.crawl.frontier.entry import FrontierEntry, PageLinks, Via, found_url
from forager.crawl.frontier.scope import CrawlScope, ScopeRule, translation_rule
from forager.crawl.options import CrawlOptions, Strategy
from forager.crawl.settlement import Outcome, Postponed, Settlement, Visit
from forager.documents.page import PreviousPage
from forager.errors import ErrorKind, Retry, SlowDown, WorkFailed
from forager.extract.keys import url_key
from forager.extract.kinds import ContentKind
from forager.extract.languages import language_of_url, primary_language
from forager.extract.text import clip, storable
from forager.extract.traps import without_session
from forager.extract.urls import NormalizedUrl, Refusal, normalize
from forager.fetch.failure import classify_status
from forager.fetch.response import REDIRECTS, Response

MAX_REDIRECTS = 10
# a refresh that takes longer is a page that reloads itself, not a redirect
REFRESH_LIMIT = 10.0
RETRY_DELAY_MAX = 300.0
# a rate limit of the host is no fault of the URL: it is retried at least this often
SLOW_DOWN_RETRIES = 10
# pages with less text than this are alike without being copies
LEAST_CONTENT = 100
MAX_DETAIL = 500
AS_MARKDOWN = "not modified; its version was read as markdown"


@dataclass(frozen=True, slots=True)
class OutcomeRules:
    """Turns responses and failures into settlements. Decides; fetches and stores nothing."""

    options: CrawlOptions
    scope: CrawlScope

    # --- failures ----------------------------------------------------------------------------

    def failure(self, entry: FrontierEntry, error: WorkFailed, status: int | None = None) -> Visit:
        """A failed URL, or one that is tried again later."""
        if isinstance(error, Retry) and entry.attempts < self._retries(error):
            return Postponed(entry, self._retry_delay(entry, error), error.message)
        reason = f"http_{status}" if status is not None else error.kind.value
        message = f"{error.message}; {error.hint}" if error.hint else error.message
        return failed(entry, reason, message, status, temporary=isinstance(error, Retry))

    def _retries(self, error: Retry) -> int:
        retries: int = self.options.retries
        return max(retries, SLOW_DOWN_RETRIES) if _asks_to_slow_down(error) else retries

    def _retry_delay(self, entry: FrontierEntry, error: Retry) -> float:
        if isinstance(error, SlowDown) and error.retry_after is not None:
            return error.retry_after
        return backoff(entry.attempts + 1, self.options.retry_delay, RETRY_DELAY_MAX)

    # --- responses without a page ------------------------------------------------------------

    def status(self, entry: FrontierEntry, response: Response) -> Visit | None:
        """The outcome by status alone; None if there is a page to read."""
        if response.status in REDIRECTS:
            return self._redirect(entry, response)
        error = classify_status(response.status, response.headers)
        if error is not None:
            return self.failure(entry, error, response.status)
        if response.status != 200 and not response.body:
            return failed(
                entry, f"http_{response.status}", "the answer has no content", response.status
            )
        return None

    def _redirect(self, entry: FrontierEntry, response: Response) -> Settlement:
        target = response.redirect and normalize(response.redirect)
        if target and not isinstance(target, Refusal):
            target = self._without_session(entry, target)
        if not target or isinstance(target, Refusal):
            location, _ = clip(response.headers.get("Location", ""), 200)
            return failed(
                entry, "bad_redirect", f"redirects to {location!r}, which is no page",
                response.status,
            )  # fmt: skip
        return self.moved(entry, target, response.status)

    def _without_session(
        self, entry: FrontierEntry, target: NormalizedUrl
    ) -> NormalizedUrl | Refusal:
        """A redirect that does nothing but add a session id has to be followed with it."""
        plain = normalize(without_session(target))
        if isinstance(plain, Refusal) or url_key(plain) in (entry.key, *entry.redirects):
            return target
        return plain

    def moved(self, entry: FrontierEntry, target: NormalizedUrl, status: int) -> Settlement:
        """The page is elsewhere: this URL repeats that one, if that one can be crawled."""
        key = url_key(target)
        if key == entry.key or key in entry.redirects:
            return failed(entry, "redirect_loop", f"redirects in a loop, to {target}", status)
        if len(entry.redirects) >= MAX_REDIRECTS:
            message = f"redirects more than {MAX_REDIRECTS} times"
            return failed(entry, "too_many_redirects", message, status)
        rule = self.scope.outside(target)
        is_start = entry.depth == 0 and entry.via in (Via.SEED, Via.REDIRECT)
        if rule is not None and not is_start:
            return Settlement(
                entry=entry,
                outcome=Outcome.EXCLUDED,
                reason="redirect_out_of_scope",
                detail=f"redirects to {target}: {rule.message}",
                duplicate_of=target,
                http_status=status,
            )
        hops = (*entry.redirects, entry.key)
        found = found_url(target, Via.REDIRECT, entry.depth, entry.key, redirects=hops)
        return Settlement(
            entry=entry,
            outcome=Outcome.DUPLICATE,
            reason="redirect",
            detail=f"redirects to {target}",
            duplicate_of=target,
            http_status=status,
            found=[found],
            new_seed=None if rule is None else target,
        )

    def moved_by_script(
        self, entry: FrontierEntry, response: Response, location: str
    ) -> Settlement:
        """A redirect by a script of the rendered page."""
        target = normalize(location)
        if isinstance(target, Refusal):
            message = f"a script leads to {location!r}, which is not a page"
            return failed(entry, "bad_redirect", message, response.status)
        return self.moved(entry, target, response.status)

    def not_modified(
        self, entry: FrontierEntry, response: Response, previous: PreviousPage, links: PageLinks
    ) -> Settlement:
        """A 304: the page is as it was, and so are its links."""
        return Settlement(
            entry=entry,
            outcome=Outcome.UNCHANGED,
            reason="not_modified",
            detail=AS_MARKDOWN if previous.is_markdown else None,
            http_status=response.status,
            duration_ms=int(response.timing.total * 1000),
            content_hash=previous.content_hash,
            etag=previous.etag,
            last_modified=previous.last_modified,
            links=links,
            previous=previous,
        )

    # --- pages -------------------------------------------------------------------------------

    def page(self, entry: FrontierEntry, response: Response, facts: Extracted) -> Settlement:
        """A page that was read. Whether it repeats another one is asked afterwards."""
        content_type = storable(clip(response.headers.get("Content-Type", ""), 200)[0])
        settled = Settlement(
            entry=entry,
            outcome=Outcome.FETCHED,
            http_status=response.status,
            content_type=content_type or None,
            title=facts.title,
            size=len(response.body),
            duration_ms=int(response.timing.total * 1000),
            # the hash of the content without menus, as generations have it
            content_hash=facts.document.content_hash if facts.document else facts.content_hash,
            etag=response.validator("ETag"),
            last_modified=response.validator("Last-Modified"),
            outlinks=facts.outlinks,
            frame=facts.frame,
            document=facts.document,
            links=facts.links,
            out_of_scope=facts.out_of_scope,
            remarks=_remarks(facts, self._is_unwanted_translation(entry)),
            is_product=facts.is_product,
        )
        if facts.kind == ContentKind.OTHER:
            message = facts.soft_error or f"{content_type or 'unknown content'} is not a page"
            reason = "no_text" if facts.soft_error else "type"
            return replace(
                settled, outcome=Outcome.EXCLUDED, reason=reason, detail=message, frame=None
            )
        if facts.refresh is not None and facts.refresh[1] <= REFRESH_LIMIT:
            return self.moved(entry, NormalizedUrl(facts.refresh[0]), response.status)
        if facts.soft_error is not None:
            return replace(
                settled, outcome=Outcome.FAILED, reason="soft_404", detail=facts.soft_error
            )
        if (rule := self._translation(entry, facts)) is not None:
            return replace(
                settled, outcome=Outcome.EXCLUDED, reason=rule.reason, detail=rule.message
            )
        if facts.noindex:
            return replace(
                settled, outcome=Outcome.EXCLUDED, reason="noindex", detail="the page says noindex"
            )
        return settled

    def _translation(self, entry: FrontierEntry, facts: Extracted) -> ScopeRule | None:
        """The rule against a page that says to be in another language; start pages are kept."""
        wanted, declared = self.scope.language, facts.language and primary_language(facts.language)
        if wanted is None or declared in (None, wanted) or entry.via is Via.SEED:
            return None
        return translation_rule(declared, wanted)

    def _is_unwanted_translation(self, entry: FrontierEntry) -> bool:
        """Whether a page may be a translation, in a crawl of all languages."""
        if self.options.language is not None:
            return False
        found = language_of_url(entry.url)
        return found is not None and found != (language_of_url(self.options.seeds[0]) or "en")

    def canonical_of(self, entry: FrontierEntry, facts: Extracted) -> NormalizedUrl | None:
        """The other URL under which this page wants to be known, if it is ours to crawl."""
        named = facts.canonical
        # one document stands behind all hash routes of a site: what it names is not about the route
        if "#" in entry.url:
            return None
        if named is None or named == entry.url or not self.options.follows_links:
            return None
        url = normalize(without_session(named))
        if isinstance(url, Refusal) or url == entry.url:
            return None
        return url if self.scope.refusal(url, entry.depth) is None else None

    @property
    def compares_content(self) -> bool:
        """URLs that were requested by name are all fetched."""
        return self.options.strategy in (Strategy.SITE, Strategy.SITEMAP, Strategy.LLMS)


def compared(settled: Settlement, previous: PreviousPage) -> Settlement:
    """A page that was there before: unchanged if its content is the same."""
    same = settled.document is not None and settled.content_hash == previous.content_hash
    outcome = Outcome.UNCHANGED if same else Outcome.FETCHED
    reason = "same_content" if same else None
    return replace(settled, outcome=outcome, reason=reason, previous=previous)


def as_duplicate(settled: Settlement, reason: str, of: str) -> Settlement:
    """A page that repeats another one; its links still count."""
    return replace(
        settled, outcome=Outcome.DUPLICATE, reason=reason, detail=f"repeats {of}", duplicate_of=of
    )


def markdown_twin(entry: FrontierEntry, page: str | None) -> Settlement:
    """The URL is the markdown of a page, which is read with that page."""
    return Settlement(
        entry=entry,
        outcome=Outcome.DUPLICATE,
        reason="markdown",
        detail=f"is the markdown of {page or 'another page'}",
        duplicate_of=page,
    )


def with_canonical(settled: Settlement, canonical: NormalizedUrl) -> Settlement:
    """A duplicate of its canonical URL, which is followed."""
    entry = settled.entry
    found = found_url(canonical, Via.CANONICAL, entry.depth, entry.key)
    return replace(as_duplicate(settled, "canonical", canonical), found=[*settled.found, found])


def excluded(entry: FrontierEntry, reason: str, detail: str) -> Settlement:
    """The URL is not part of the crawl, by a rule."""
    return Settlement(entry=entry, outcome=Outcome.EXCLUDED, reason=reason, detail=_message(detail))


def failed(
    entry: FrontierEntry,
    reason: str,
    detail: str,
    status: int | None = None,
    *,
    temporary: bool = False,
) -> Settlement:
    """The URL could not be fetched or read; `temporary`: a refresh may succeed."""
    return Settlement(
        entry=entry,
        outcome=Outcome.FAILED,
        reason=reason,
        detail=_message(detail),
        http_status=status,
        temporary=temporary,
    )


def _asks_to_slow_down(error: Retry) -> bool:
    """A 429, or a 503 that says until when; a 503 without one may be a permanently broken page."""
    if not isinstance(error, SlowDown):
        return False
    return error.kind is ErrorKind.HTTP_CLIENT or error.retry_after is not None


def _message(text: str) -> str:
    """Words may quote what a server sent."""
    return storable(clip(text, MAX_DETAIL)[0])


def _remarks(facts: Extracted, is_translation: bool) -> tuple[str, ...]:
    remarks = ["translations"] if is_translation else []
    remarks += [cut.partition(":")[0] + "_cut" for cut in facts.truncated]
    if facts.sessions:
        remarks.append("session_ids_removed")
    if facts.needs_javascript:
        remarks.append("needs_javascript")
    if facts.is_product:
        remarks.append("products_found")
    return tuple(remarks)
