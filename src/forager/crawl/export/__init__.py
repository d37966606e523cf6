"""Export of what a job found."""
