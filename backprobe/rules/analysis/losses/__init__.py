"""Losses: their calls, activations before them, and their course."""
