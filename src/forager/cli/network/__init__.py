"""Commands about hosts and proxies, and about events and the webhooks that receive them."""
