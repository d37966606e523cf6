"""Commands that run, configure and examine an installation, its database and its archive."""
