"""The main element of a page, and the boilerplate inside it."""
