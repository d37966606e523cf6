"""Explanations: the outcome of a URL, and the reasons for it."""
