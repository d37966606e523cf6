"""One site in, settled pages out: what belongs to a crawl, what is known, what comes next."""
