"""The process that listens: waitress, its children, event streams, and what it needs at start."""
