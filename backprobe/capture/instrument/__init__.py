"""Puts the instrument into torch and into rewritten code, and takes it out again."""
