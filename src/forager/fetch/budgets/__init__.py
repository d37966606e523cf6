"""Request budgets per host, shared by all processes through the database."""
