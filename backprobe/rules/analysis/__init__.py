"""Tables that rules share: what a record says of source, graph, tensors, gradients, losses, modules and training."""
