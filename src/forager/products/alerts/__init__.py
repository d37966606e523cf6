"""Alert rules: which new offers trigger an event."""
