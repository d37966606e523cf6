"""The dashboard: pages drawn by the server, kept up to date by one stream each."""
