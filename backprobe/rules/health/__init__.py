"""Findings about the run, the record and the rules themselves (9xx)."""
