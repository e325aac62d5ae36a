"""The database: every table, every query. The only package that imports sqlalchemy."""
