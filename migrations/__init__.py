"""The schema's history: one Alembic tree for SQLite and PostgreSQL. `store.migrate` runs it."""
