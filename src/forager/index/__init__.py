"""A search engine beside PostgreSQL: fed from the outbox, queried for candidates, rebuilt."""
