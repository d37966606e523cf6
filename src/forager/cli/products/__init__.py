"""Commands about products, the tasks that track them, and the parsers that read them."""
