"""What users can do with sources and their pages."""
