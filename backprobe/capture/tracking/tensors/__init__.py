"""Tensors: which there are, their names, their state and its changes, and what they were made from."""
