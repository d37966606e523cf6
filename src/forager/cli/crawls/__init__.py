"""Commands that crawl, and that show what was crawled: jobs, sources, documents."""
