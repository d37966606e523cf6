"""Chaos: a site that knows its truth, everything that crawls it, and a monkey that breaks things.

`forager-chaos` runs it. Nothing else imports this package.
"""
