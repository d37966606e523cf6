"""A search engine beside PostgreSQL: fed from the outbox, asked for candidates, made anew."""
