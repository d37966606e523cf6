"""Extraction processes, as a runner uses them."""
