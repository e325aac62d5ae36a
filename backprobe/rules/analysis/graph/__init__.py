"""The autograd graph: walks, reach, breaks of history, roots, and what is retained."""
