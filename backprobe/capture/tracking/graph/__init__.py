"""The autograd graph: nodes, backward calls, and what stays of it."""
