"""What Alembic runs to migrate: on the connection it is handed, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from advisor.history.schema import METADATA

__all__: list[str] = []


def _migrate() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=METADATA,
        version_table=context.config.get_main_option("version_table"),
        render_as_batch=True,
    )
    context.run_migrations()


# Alembic loads this file under this name; an import by anything else must not migrate.
if __name__ == "env_py":
    _migrate()
