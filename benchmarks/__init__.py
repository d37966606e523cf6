"""Repeatable benchmarks: each script prints its results and the machine they were measured on."""
