"""Read and export the results of crawls."""
