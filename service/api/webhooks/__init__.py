"""Webhooks and what was sent to them."""
