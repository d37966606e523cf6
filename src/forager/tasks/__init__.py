"""Tracked URLs: schedule, lifecycle, download and parse stages, dead letters."""
