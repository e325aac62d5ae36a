"""A record as rows of the database: written, read, followed while its run goes on, exported, dropped."""
