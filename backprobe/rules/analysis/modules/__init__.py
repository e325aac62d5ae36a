"""Modules: their tree, calls, outputs and modes."""
