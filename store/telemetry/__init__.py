"""Logs, trace context, spans, and whether the broker answers."""
