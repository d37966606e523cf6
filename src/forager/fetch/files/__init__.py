"""Sources that are not fetched from a site: folders, archives and repositories."""
