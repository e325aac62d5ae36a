"""The autograd graph: nodes, backward calls, the view of it, and what was retained."""
