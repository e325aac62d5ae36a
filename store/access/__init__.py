"""Who may ask, and how much: tenants, projects, keys, quotas, and the log of what they wrote."""
