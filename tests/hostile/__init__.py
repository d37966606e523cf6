"""Input that was made to do harm, and what must become of it."""
