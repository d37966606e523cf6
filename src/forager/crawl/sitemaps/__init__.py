"""Sitemaps, feeds and lists of URLs."""
