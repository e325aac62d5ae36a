"""`%load_ext backprobe`: cells and statements of a notebook under capture. IPython is imported by whoever loads it."""

from backprobe.notebook.cell_results import MIME, CellResult
from backprobe.notebook.magics import BackprobeMagics, load

__all__ = ["MIME", "BackprobeMagics", "CellResult", "load"]
