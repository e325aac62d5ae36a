"""Runs: their life from the queue to the end, their rows, limits, events and programs."""
