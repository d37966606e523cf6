"""Documents: generations of a source, the sections in them, what changed, and what readers see."""
