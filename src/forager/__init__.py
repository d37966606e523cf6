"""Forager crawls documentation sites and shops into a searchable, versioned store."""

__version__ = "0.1.0"
