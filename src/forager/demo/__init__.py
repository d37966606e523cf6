"""A small documentation site that comes with Forager, to crawl where there is no network."""

# where it is served if that port is free: at the same address, a second crawl is a refresh
PORT = 8725
