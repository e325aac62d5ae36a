"""Adapters: one tool each."""
