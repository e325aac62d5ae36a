"""Tensors: history, parents, changes in place, values that are not finite."""
