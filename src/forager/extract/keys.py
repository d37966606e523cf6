"""Hashes of normalized URLs: keys in the database and in memory."""

from __future__ import annotations

from hashlib import sha256

KEY_LENGTH = 16


def url_hash(url: str) -> bytes:
    """SHA-256 of a normalized URL."""
    # a URL that was not normalized may have a lone surrogate; it still gets a hash
    return sha256(url.encode("utf-8", "surrogatepass")).digest()


def url_key(url: str) -> bytes:
    """The first 16 bytes of the hash: the key in frontier and visited."""
    return url_hash(url)[:KEY_LENGTH]


def key_fingerprint(key: bytes) -> int:
    """The first 64 bits of the hash, which are kept in memory for a known URL."""
    return int.from_bytes(key[:8], "big")
