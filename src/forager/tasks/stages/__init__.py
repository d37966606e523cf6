"""The two stages of a task: download a page, then parse it."""
