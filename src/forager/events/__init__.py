"""Events: what happened to products, domains, parsers, sources and crawls."""
