"""Entry of alembic: runs migrations on the connection that `dumpscope.index.store.upgrade` hands over."""

from alembic import context

from dumpscope.index.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
