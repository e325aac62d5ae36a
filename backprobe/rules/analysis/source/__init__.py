"""The program's source: syntax trees, scopes, data flow, names."""
