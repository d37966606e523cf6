"""Facts of the visible page: prices, availability, labels and brands in its elements."""
