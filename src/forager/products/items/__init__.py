"""Items: the offers of the same article in all shops, and comparisons of them."""
