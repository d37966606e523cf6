"""Events: what happened to products, domains and parsers."""
