"""Products: validation, prices, search, export and archiving."""
