"""`%load_ext backprobe`: cells and statements of a notebook under capture. IPython is imported by whoever loads it."""

from backprobe.notebook.magics import BackprobeMagics, load
from backprobe.notebook.shown import MIME, Shown

__all__ = ["MIME", "BackprobeMagics", "Shown", "load"]
