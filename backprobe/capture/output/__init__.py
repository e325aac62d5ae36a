"""Rows on their way out: buffered, capped, encoded."""
