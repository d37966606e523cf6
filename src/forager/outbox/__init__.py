"""The outbox: messages to other systems, written with the change that they report."""
