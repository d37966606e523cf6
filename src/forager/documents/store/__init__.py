"""The SQL of documents: one statement per function, no decisions."""
