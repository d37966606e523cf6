"""All pages and lists of the server, as URLs that can be requested."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from fastapi.routing import APIRoute

from forager.api import app as api
from forager.web import app as web

# streams, files and forms: neither pages nor lists
LEFT_OUT = ("/sign-in", "/export", "/images/{position}", "{crawl_id}/events")
_HOLE = re.compile(r"\{(\w+)(?::\w+)?\}")

# other parameters of a list, if they run other queries
MORE: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("/jobs", {"status": "failed"}),
    ("/jobs", {"q": "site17"}),
    ("/api/v1/jobs", {"status": "failed"}),
    ("/api/v1/jobs", {"source": "site17"}),
    ("/api/v1/jobs/{job_id}/pages", {"outcome": "failed"}),
    ("/products", {"q": "brass lamp"}),
    ("/products", {"brand": "Brand 7"}),
    ("/api/v1/products", {"q": "brass lamp"}),
    ("/api/v1/products", {"min_price": "100", "max_price": "120", "availability": "in_stock"}),
    ("/api/v1/products", {"brand": "Brand 7"}),
    ("/api/v1/products", {"category": "Home > lamp"}),
    ("/api/v1/products", {"domain": "shop7.example"}),
    ("/api/v1/products", {"order": "cheapest"}),
    ("/api/v1/products", {"has_problems": "true"}),
    ("/api/v1/tasks", {"status": "failed"}),
    ("/api/v1/tasks", {"domain": "shop7.example"}),
    ("/tasks", {"status": "failed"}),
    ("/api/v1/errors", {"domain": "shop7.example"}),
    ("/api/v1/events", {"kind": "product.price_changed"}),
)
# required parameters of a URL
NEEDED: Mapping[str, Mapping[str, str]] = {
    "/search": {"q": "set up a proxy"},
    "/api/v1/search": {"q": "set up a proxy"},
    "/read": {"source": "site17", "url": "https://site17.example/guide/17"},
    "/api/v1/documents": {"source": "site17"},
    "/api/v1/documents/read": {"url": "https://site17.example/guide/17"},
    "/api/v1/sections": {"source": "site17", "path": "/guide/17"},
    "/api/v1/explain": {"url": "https://site17.example/guide/17"},
    "/api/v1/products/by-url": {"url": "https://shop18.example/product/17"},
    "/api/v1/tasks/by-url": {"url": "https://shop18.example/product/17"},
    "/sources/{source_id}/diff": {"old": "2", "new": "3"},
    "/api/v1/sources/{source_id}/diff": {"old": "2", "new": "3"},
}


@dataclass(frozen=True, slots=True)
class Question:
    """A route, its query, and the values of its path parameters."""

    path: str
    query: Mapping[str, str]
    samples: Mapping[str, Sequence[str]]

    @property
    def name(self) -> str:
        shown = " ".join(f"{name}={value}" for name, value in self.query.items())
        return f"{self.path} {shown}".strip() if self.path not in NEEDED else self.path

    @property
    def is_page(self) -> bool:
        return not self.path.startswith("/api/")

    def address(self, chance: random.Random) -> str:
        path = _HOLE.sub(lambda hole: quote(chance.choice(self.samples[hole[1]])), self.path)
        return f"{path}?{urlencode(self.query)}" if self.query else path


def questions(connection: psycopg.Connection[Any]) -> list[Question]:
    """All pages and lists, found from the routes of the server."""
    samples = _samples(connection)
    paths = [path for path in _paths() if not path.endswith(LEFT_OUT)]
    asked = [(path, NEEDED.get(path, {})) for path in paths]
    asked += [(path, query) for path, query in MORE if path in paths]
    return [Question(path, query, samples) for path, query in asked]


def _paths() -> list[str]:
    found = [
        f"{prefix}{route.path}"
        for prefix, routers in (("/api", api.ROUTERS), ("", web.ROUTERS))
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ())
    ]
    return list(dict.fromkeys(found))


def _samples(connection: psycopg.Connection[Any]) -> dict[str, Sequence[str]]:
    def values(statement: str) -> list[str]:
        return [str(row[0]) for row in connection.execute(statement.encode()).fetchall()]

    # small finished jobs, and large running ones
    jobs = values(
        "(SELECT id FROM crawl_jobs WHERE status = 'processing')"
        " UNION ALL (SELECT id FROM crawl_jobs ORDER BY created_at LIMIT 40)"
    )
    products = values("SELECT id FROM products WHERE id % 9973 = 1")
    return {
        "job_id": jobs,
        "crawl_id": jobs,
        "source_id": [f"site{number}" for number in range(0, 2000, 37)],
        "product_id": products,
        "task_id": values("SELECT id FROM crawl_tasks WHERE id % 9973 = 1"),
        "error_id": values("SELECT id FROM error_logs WHERE id % 997 = 1"),
        "webhook_id": values("SELECT id FROM webhooks"),
        "host": [f"shop{number}.example" for number in range(1, 1000, 17)],
        "key_id": values("SELECT id FROM api_keys"),
        "user_id": values("SELECT user_id FROM api_keys"),
    }
