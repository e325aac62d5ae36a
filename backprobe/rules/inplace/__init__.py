"""In-place changes and versions (4xx)."""
