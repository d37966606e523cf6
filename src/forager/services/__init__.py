"""Background services: declared as data, run and restarted by one supervisor, visible to all."""
