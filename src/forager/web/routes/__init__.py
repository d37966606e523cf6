"""The pages and what can be done on them: each calls the services that the API calls."""
