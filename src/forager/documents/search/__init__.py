"""Full-text search over what is published."""

from forager.documents.search.hit import Hit, SearchPage, SearchRequest
from forager.documents.search.service import search

__all__ = ["Hit", "SearchPage", "SearchRequest", "search"]
