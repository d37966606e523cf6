"""Child processes: start them, limit them, and end them with everything they started."""
