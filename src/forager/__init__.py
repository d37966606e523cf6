"""Forager crawls documentation sites and shops into a searchable, versioned store.

with forager.open() as store:
    store.crawl("https://docs.example.org/")
    for hit in store.search("row locks").items:
        print(hit.url, hit.snippet)
"""

__version__ = "0.1.0"

# the public names, by module; everything else in the package is private
_PUBLIC = {
    "forager.db.database": "Connection open_database",
    "forager.documents.search.hit": "SectionKind",
    "forager.errors": "ForagerError GiveUp InvalidInput NotAllowed NotFound",
    "forager.jobs.context": "JobContext",
    "forager.jobs.job": "NewJob",
    "forager.jobs.kinds": "Completed JobKind Outcome Stopped Waiting load_kinds register",
    "forager.jobs.lifecycle": "FINISHED",
    "forager.jobs.queue": "Queue",
    "forager.jobs.supervisor": "Supervisor",
    "forager.library": "AsyncForager Forager open open_async",
    "forager.parsers.parser": "ABSENT Absent SiteParser",
    "forager.products.alerts.rules": "AlertKind NewAlert",
    "forager.products.filters": "Filters PriceDirection PriceMeasure",
    "forager.settings": "load_settings",
    "forager.webhooks.signing": "InvalidSignature verify_signature",
}
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> object:
    """Everything in Forager imports this module: what it offers is loaded when it is used.

    Type checkers read the `.pyi` beside it, so that no import here ties the layers together.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'forager' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
