"""Validation of what pages show: rules for each field, and plausible changes of known products."""
