"""Domains: per-host crawl settings."""
