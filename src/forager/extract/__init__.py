"""Bytes in, facts out. Everything here is pure: no network, no files, no clock."""
