"""All counters and histograms, by their Prometheus names."""

from __future__ import annotations

from forager.metrics.meters import Counter, Histogram, Meter

# the quickest commit takes a millisecond, the slowest that is allowed a minute
_COMMIT = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
_WAIT = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60)
_EXTRACTION = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 20)
_FETCH = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
_ANSWER = (0.005, 0.025, 0.1, 0.25, 1, 2.5, 10)

# --- crawls --------------------------------------------------------------------------------------

PAGES = Counter("forager_pages_total", "URLs that crawls have settled.", ("outcome",))
PAGE_BYTES = Counter("forager_page_bytes_total", "Bytes of the pages that crawls have settled.")
EXTRACTION_SECONDS = Histogram(
    "forager_extraction_seconds",
    "How long a page waited for an extraction process and was read by it.",
    ("what",),
    bounds=_EXTRACTION,
)

# --- both, crawls and products -------------------------------------------------------------------

ERRORS = Counter(
    "forager_errors_total", "Pages that failed, and attempts of tasks that did.", ("kind",)
)
FETCH_SECONDS = Histogram(
    "forager_fetch_seconds", "From sending a request to the end of its answer.", bounds=_FETCH
)
BUDGET_WAIT_SECONDS = Histogram(
    "forager_budget_wait_seconds", "How long a request waited for its host's turn.", bounds=_WAIT
)

# --- jobs ----------------------------------------------------------------------------------------

COMMIT_SECONDS = Histogram(
    "forager_commit_seconds",
    "Commits of jobs, from asking for a connection to the database's answer.",
    bounds=_COMMIT,
)
JOB_RUNS = Counter("forager_job_runs_total", "Runs of jobs, by how they ended.", ("outcome",))
LEASE_LOSSES = Counter(
    "forager_lease_losses_total",
    "Leases that were lost: taken from dead workers, or found to be gone by who held them.",
    ("where",),
)

# --- products ------------------------------------------------------------------------------------

DOWNLOADS = Counter("forager_downloads_total", "Attempts to download a task's page.", ("outcome",))
PARSES = Counter("forager_parses_total", "Pages of tasks that were read.", ("outcome",))
BYPASSED_PAGES = Counter(
    "forager_parser_bypassed_pages_total",
    "Pages read by the generic extraction because their parser keeps failing.",
    ("parser",),
)
WEBHOOK_DELIVERIES = Counter(
    "forager_webhook_deliveries_total", "Messages sent to webhooks.", ("outcome",)
)

# --- the search engine ---------------------------------------------------------------------------

INDEX_ENTRIES = Counter(
    "forager_index_entries_total",
    "Entries sent to the search engine, by outcome.",
    ("kind", "outcome"),
)
SEARCHES = Counter(
    "forager_searches_total",
    "Searches, by who answered: `fallback` is PostgreSQL in the place of the search engine.",
    ("kind", "answered_by"),
)
DISPATCHED = Counter(
    "forager_dispatch_messages_total",
    "Messages about tasks that were published to a broker, or refused by it.",
    ("stage", "outcome"),
)

# --- the API -------------------------------------------------------------------------------------

API_REQUESTS = Counter(
    "forager_api_requests_total",
    "Requests that API and dashboard have answered.",
    ("route", "method", "status"),
)
API_SECONDS = Histogram(
    "forager_api_request_seconds",
    "How long answers took, without streams.",
    ("route",),
    bounds=_ANSWER,
)

METERS: tuple[Meter, ...] = tuple(
    each for each in list(vars().values()) if isinstance(each, Counter | Histogram)
)
