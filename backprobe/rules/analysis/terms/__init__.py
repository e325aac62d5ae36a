"""The terms of a loss: where they come from, which are cut off, which count twice."""
