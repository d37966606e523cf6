"""How much time and how many bytes one response may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes. `total` ends everything, however busily a server drips."""

    connect: float = 10.0  # name lookup, TCP, proxy and TLS handshakes together
    read: float = 20.0  # silence between two reads
    total: float = 120.0
    body: int = 20 * 1024 * 1024  # on the wire, and again after decompression
    header_bytes: int = 64 * 1024
    header_count: int = 128

    def __post_init__(self) -> None:
        # zero would mean "no limit" to the library underneath
        for name in ("connect", "read", "total", "body", "header_bytes", "header_count"):
            if not getattr(self, name) > 0:
                raise ValueError(f"limit {name} must be above zero")
