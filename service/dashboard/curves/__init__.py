"""Curves of a run: numbers over its training steps."""
