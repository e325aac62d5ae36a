"""Requests and answers: bodies, parameters, pages, cursors, idempotency, compression."""
