"""Images of products: which are known, their files, and fetching them."""
