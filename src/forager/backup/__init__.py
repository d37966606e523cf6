"""Backup and restore of everything that Forager keeps: database, archive, key of secrets."""
