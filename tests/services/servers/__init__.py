"""The real servers that Forager can be combined with, each on loopback and in a separate folder.

They are obtained once for each user (see `obtaining`) and run under a guard that ends them
with the process that started them.
"""
