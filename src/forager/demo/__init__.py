"""A small documentation site that comes with Forager, to crawl where there is no network."""
