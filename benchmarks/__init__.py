"""Measurements, to be repeated by anybody: each script prints what it measured, and on what."""
