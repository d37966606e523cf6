"""The progress of crawls: what they wait for, their counts over time, and their reports."""
