"""The guard: which addresses may be connected to. DNS and odd spellings cannot get around it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from forager.errors import ErrorKind, GiveUp
from forager.hints import Hint, Option

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# explicit tables rather than `is_global`: the result of the standard library differs between
# patch releases of Python
_REFUSED_V4 = {
    "unspecified": ["0.0.0.0/8"],
    "private": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
    "shared (CGNAT)": ["100.64.0.0/10"],
    "loopback": ["127.0.0.0/8"],
    "link-local": ["169.254.0.0/16"],
    "reserved": [
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    ],
    "multicast": ["224.0.0.0/4"],
}
_REFUSED_V6 = {
    "unspecified": ["::/128"],
    "loopback": ["::1/128"],
    "private": ["fc00::/7", "fec0::/10"],
    "link-local": ["fe80::/10"],
    "multicast": ["ff00::/8"],
    # Teredo (2001::/32) is part of the first of these
    "reserved": ["2001::/23", "2001:db8::/32", "3fff::/20"],
}
# instance metadata contains credentials, so `allow_private` alone does not allow it
_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "168.63.129.16",
        "192.0.0.192",
        "100.100.100.200",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal"})
# a proxy resolves names itself; these can only be near the proxy
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")

_GLOBAL_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_SIX_TO_FOUR = IPv6Network("2002::/16")


def _flatten(table: dict[str, list[str]]) -> list[tuple[Network, str]]:
    return [(ip_network(text), label) for label, texts in table.items() for text in texts]


_TABLE_V4 = _flatten(_REFUSED_V4)
_TABLE_V6 = _flatten(_REFUSED_V6)


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """Addresses that may be connected to in addition to the public internet."""

    allow_private: bool = False
    allow_networks: tuple[Network, ...] = ()
    allow_hosts: frozenset[str] = frozenset()

    def refusal(self, address: str, host: str = "") -> str | None:
        """Why the address is refused; None if it may be used."""
        parsed = _parse(address)
        if parsed is None:
            return "unreadable"
        label, inner = _classify(parsed)
        if label is None or host in self.allow_hosts:
            return None
        if any(ip in network for network in self.allow_networks for ip in (parsed, inner)):
            return None
        return None if self.allow_private and label != "metadata" else label

    def check_address(self, address: str, host: str) -> None:
        """Raise an error unless the address of `host` may be connected to."""
        label = self.refusal(address, host)
        if label is not None:
            raise refused(address, host, label)

    def check_literal(self, host: str) -> None:
        """Raise an error if the normalized host is an IP address that may not be connected to."""
        literal = literal_address(host)
        if literal is not None:
            self.check_address(literal, host)

    def check_unresolved(self, host: str) -> None:
        """Raise an error if a name that a proxy will resolve is known to be private."""
        name = host.rstrip(".").lower()
        if name in self.allow_hosts:
            return
        if name in _METADATA_NAMES:
            raise refused(host, host, "metadata")
        near = name == "localhost" or name.endswith(_PRIVATE_SUFFIXES)
        if near and not self.allow_private:
            raise refused(host, host, "private")
        self.check_literal(host)


PUBLIC = GuardPolicy()


def is_private(address: str) -> bool:
    """Whether this is an address that only an installation's own network may reach."""
    return _parse(address) is not None and PUBLIC.refusal(address) is not None


def refused(address: str, host: str, label: str) -> GiveUp:
    """The error for a refused address, with a hint how to allow it."""
    subject = host if host.strip("[]") == address else f"{host} resolves to {address}, which"
    hint = (
        "an instance metadata address is opened only by naming it among the allowed networks"
        if label == "metadata"
        else Hint("use {} to crawl private addresses", Option("allow_private"))
    )
    message = f"{subject} is a {label} address and may not be crawled"
    return GiveUp(message, kind=ErrorKind.NOT_ALLOWED, hint=hint)


def literal_address(host: str) -> str | None:
    """The IP address that a normalized host consists of, or None for a name."""
    if host.startswith("["):
        return host.strip("[]")
    # after normalization only a dotted IPv4 address has a number as its last label
    return host if host.rpartition(".")[2].isdigit() else None


@lru_cache(maxsize=4096)
def _parse(address: str) -> Address | None:
    try:
        return ip_address(address.partition("%")[0])
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _classify(address: Address) -> tuple[str | None, Address]:
    """Why an address is refused by default, and the IPv4 address that it contains, if any."""
    inner = _embedded(address)
    if address in _METADATA or inner in _METADATA:
        return "metadata", inner
    if address in _LOCAL_NAT64:
        translated = _locally_translated(int(address))
        is_metadata = any(each in _METADATA for each in translated)
        return "metadata" if is_metadata else "private", inner
    if inner.version == 4:
        return _lookup(inner, _TABLE_V4), inner
    label = _lookup(inner, _TABLE_V6)
    return label or (None if inner in _GLOBAL_V6 else "reserved"), inner


def _locally_translated(address: int) -> list[IPv4Address]:
    """The possible IPv4 addresses: each network chooses the length of its prefix (RFC 6052)."""
    meanings = (
        address >> 64 << 16 & 0xFFFF_0000 | address >> 40 & 0xFFFF,  # 48 bits
        address >> 64 << 24 & 0xFF00_0000 | address >> 32 & 0xFF_FFFF,  # 56
        address >> 24 & 0xFFFF_FFFF,  # 64
        address & 0xFFFF_FFFF,  # 96
    )
    return [IPv4Address(meaning) for meaning in meanings]


def _lookup(address: Address, table: list[tuple[Network, str]]) -> str | None:
    return next((label for network, label in table if address in network), None)


def _embedded(address: Address) -> Address:
    """The IPv4 address inside a mapped, NAT64 or 6to4 address; otherwise the address itself."""
    if address.version == 4:
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address((int(address) >> 80) & 0xFFFF_FFFF)
    return address
