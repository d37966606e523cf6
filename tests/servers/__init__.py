"""Real servers on loopback for the tests: hostile ones, proxies, certificates."""
