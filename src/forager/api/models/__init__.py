"""What goes in and what comes out: the edge of the API, in Pydantic models."""
