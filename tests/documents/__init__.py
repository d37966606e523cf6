"""Documents: a package, because other folders have a conftest of their own too."""
