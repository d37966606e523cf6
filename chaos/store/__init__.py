"""SQL of the harness: what it watches, what it asks, and what it breaks."""
