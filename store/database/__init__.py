"""Connections, transactions, settings, ids, and the clock of the database."""
