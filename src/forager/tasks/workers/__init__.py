"""Worker processes that run the stages of tasks."""
