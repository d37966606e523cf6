"""SQL of the harness: audit triggers, checks and faults."""
