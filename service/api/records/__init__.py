"""The record of a run: tensors, graph, history, source, rows, files."""
