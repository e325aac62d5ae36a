"""Gradients: arrival, accumulation, use, hooks, and why there is none."""
