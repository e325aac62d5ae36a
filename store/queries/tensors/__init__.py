"""Tensors and snapshots: pages, one in full, the state at a moment."""
