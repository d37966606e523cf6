"""Every target by its name. Each is imported alone: a fuzzer watches all that is imported."""

from __future__ import annotations

from importlib import import_module

from fuzz.target import Target

PLACES = {
    "urls": ("addresses", "TARGET"),
    "robots": ("robots_txt", "TARGET"),
    "sitemaps": ("sitemap", "TARGET"),
    "charset": ("charset", "TARGET"),
    "html": ("reading", "HTML"),
    "markdown": ("reading", "MARKDOWN"),
    "headers": ("reading", "HEADERS"),
    "product": ("product", "MARKUP"),
    "json-ld": ("product", "JSON_LD"),
    "script-state": ("product", "STATE"),
    "prices": ("amounts", "TARGET"),
    "warc": ("warc", "TARGET"),
    "api-bodies": ("bodies", "TARGET"),
    "search": ("queries", "TARGET"),
    "task-lists": ("task_lists", "TARGET"),
}


def load(name: str) -> Target:
    module, attribute = PLACES[name]
    target = getattr(import_module(f"fuzz.{module}"), attribute)
    assert isinstance(target, Target)
    return target
