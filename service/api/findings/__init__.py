"""Findings, their groups and formats, and the rules."""
