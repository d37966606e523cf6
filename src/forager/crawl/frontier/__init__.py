"""The frontier: discovered URLs, scope, deduplication and order."""
