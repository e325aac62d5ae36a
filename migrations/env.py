"""What Alembic calls: run the revisions on the connection that `store.database.migrator` opened, in its transaction."""

from alembic import context

from store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
