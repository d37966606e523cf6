"""Who may do what: keys, scopes, owners, and how much each owner may use."""
