"""Backprobe: why is this gradient None, this graph alive, this loss NaN; which line to change. Torch is not imported."""

__version__ = "0.1.0"
