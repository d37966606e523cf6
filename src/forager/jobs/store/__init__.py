"""The queue's SQL: one statement per function, no decisions. `queue.py` decides."""
