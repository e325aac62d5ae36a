"""Runs many small programs under capture, in forks of one warm process."""
