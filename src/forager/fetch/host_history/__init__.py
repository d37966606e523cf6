"""The responses of each host over time, one row per minute."""
