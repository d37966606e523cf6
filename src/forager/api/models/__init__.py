"""Models of endpoints that are not derived from operations."""
