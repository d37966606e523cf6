"""The SQL of products and tasks: one statement per function, no decisions."""
