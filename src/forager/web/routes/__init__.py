"""Pages and their actions, which call the same services as the API."""
