"""Edits of the user's source that fixes are made of."""
