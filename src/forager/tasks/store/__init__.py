"""SQL of tasks: one statement per function, no decisions."""
