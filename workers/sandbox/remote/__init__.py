"""Warm processes in another container."""
