"""One URL in, one response out: client, robots, budgets, proxies, guard."""

from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.failure import classify_status
from forager.fetch.guard import GuardPolicy
from forager.fetch.limits import Limits
from forager.fetch.proxy import ProxyScheme, ProxySpec
from forager.fetch.redirects import Followed, Hop, follow
from forager.fetch.resolver import Resolver, SystemResolver
from forager.fetch.response import Headers, Method, Request, Response, Timing

__all__ = [
    "Client",
    "ClientOptions",
    "Followed",
    "GuardPolicy",
    "Headers",
    "Hop",
    "Limits",
    "Method",
    "PoolSize",
    "ProxyScheme",
    "ProxySpec",
    "Request",
    "Resolver",
    "Response",
    "SystemResolver",
    "Timing",
    "classify_status",
    "follow",
]
