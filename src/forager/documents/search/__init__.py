"""Full-text search over what is published."""

from forager.documents.search.hit import Hit, SearchPage, SearchRequest, SectionKind
from forager.documents.search.service import search

__all__ = ["Hit", "SearchPage", "SearchRequest", "SectionKind", "search"]
