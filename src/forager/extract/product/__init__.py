"""What a page says about a product: facts from every place it may say so, and one merged answer."""
