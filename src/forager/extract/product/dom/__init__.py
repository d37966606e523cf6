"""What a reader of the page sees: prices, stock, labels, crumbs and pictures in its elements."""
