"""PostgreSQL: the embedded server, connections, tables and migrations."""
