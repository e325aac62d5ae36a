"""Pages for those who run the service."""
