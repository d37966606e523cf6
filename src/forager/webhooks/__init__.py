"""Events, the outbox, and webhook delivery."""
