"""The SQL of indexes: which there are, and what they have not been told."""
