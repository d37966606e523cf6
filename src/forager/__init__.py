"""Forager crawls documentation sites and shops into a searchable, versioned store.

with forager.open() as store:
    store.crawl("https://docs.example.org/")
    for hit in store.search("row locks").items:
        print(hit.url, hit.snippet)
"""

__version__ = "0.1.0"

__all__ = ["AsyncForager", "Forager", "__version__", "open", "open_async"]


def __getattr__(name: str) -> object:
    """Everything in Forager imports this module: what it offers is loaded when it is used.

    Type checkers read the `.pyi` beside it, so that no import here ties the layers together.
    """
    if name not in __all__:
        raise AttributeError(f"module 'forager' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("forager.library"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
