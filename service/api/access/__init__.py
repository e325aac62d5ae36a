"""Keys and projects."""
