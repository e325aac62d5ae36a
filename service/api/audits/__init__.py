"""Audits and policies."""
