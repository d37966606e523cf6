"""One URL in, one response out: client, robots, budgets, proxies, guard."""
