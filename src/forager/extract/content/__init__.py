"""Which element of a page holds its content, and what inside it is not content."""
