"""The schema's history: one Alembic tree for SQLite and PostgreSQL. `store.database.migrator` runs it."""
