"""Retention; backward calls, their roots, inputs and flags (3xx)."""
