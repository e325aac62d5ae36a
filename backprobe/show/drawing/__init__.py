"""The autograd graph as boxes and edges: which nodes share a box, where boxes stand, and the SVG."""
