"""One URL visited: how its host is reached, how it is fetched, and its outcome."""
