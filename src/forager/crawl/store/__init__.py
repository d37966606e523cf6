"""The crawl's SQL. A batch touches only its own rows: its cost does not grow with the crawl."""
