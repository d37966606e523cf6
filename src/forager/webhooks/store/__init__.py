"""SQL of events, the outbox and webhooks."""
