"""The child process that runs strangers' code, and the trusted side that watches it."""
