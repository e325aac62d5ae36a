"""Runs as they are read: rows, filters, events in order, and the wait for an end."""
