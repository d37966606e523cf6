"""Hosts of URLs, and the domains that they belong to."""

from __future__ import annotations

import ipaddress
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList


def host_of(url: str) -> str:
    """The host of a normalized URL: lower-case ASCII, with its port if not the default one."""
    start = url.find("//") + 2
    end = url.find("/", start)
    return url[start:] if end < 0 else url[start:end]


def host_name(host: str) -> str:
    """The host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


@lru_cache(maxsize=10_000)
def registrable_domain(host: str) -> str:
    """The part of a host that one owner registered: docs.example.co.uk -> example.co.uk.

    Suffixes under which companies host their users count (project.github.io is separate), so a
    crawl of one user's pages does not spread to all others. IP addresses and names without a
    registrable part (localhost, co.uk) are returned unchanged.
    """
    name = host_name(host)
    if is_address(name):
        return name
    return _suffixes().privatesuffix(name.rstrip(".")) or name


def parent_domains(host: str) -> list[str]:
    """The domains whose row would cover this host, nearest first; the port stays."""
    name = host_name(host)
    if is_address(name):
        return []
    labels, port = name.split("."), host[len(name) :]
    return [".".join(labels[i:]) + port for i in range(1, len(labels) - 1)]


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


@cache
def _suffixes() -> PublicSuffixList:
    # read on first use: most crawls stay on one host and never need the list
    return PublicSuffixList()


def base_url(host: str) -> str:
    """The likely base URL of a host."""
    plain = host_name(host) != host or is_loopback(host)
    return f"{'http' if plain else 'https'}://{host}/"


def is_loopback(host: str) -> bool:
    """Whether a host, with or without port, is this machine by its name alone."""
    name = host_name(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return is_address(name) and ipaddress.ip_address(name.strip("[]")).is_loopback
