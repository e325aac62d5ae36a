"""Values over moments: series, heatmaps, highest norms, two runs aligned."""
