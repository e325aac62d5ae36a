"""Errors as problem+json, and every code that one can carry."""
