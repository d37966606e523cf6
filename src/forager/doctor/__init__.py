"""The doctor: checks everything that Forager depends on, and suggests fixes."""
