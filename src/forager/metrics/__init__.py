"""Metrics: numbers of all processes together, kept in the database and shown to Prometheus."""
