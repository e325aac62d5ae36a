"""Optimizer and scheduler, clipping, AMP, DDP (7xx)."""
