"""Stores as earlier versions of the program left them."""

from __future__ import annotations

from alembic import command
from alembic.config import Config

from advisor.history import database

__all__ = ["taken_back"]


def taken_back(url: str, revision: str) -> None:
    """Give the store behind ``url`` the tables of an earlier ``revision``."""
    made = database.Database.open(url)
    config = Config()
    config.set_main_option("script_location", str(database._MIGRATIONS))
    config.set_main_option("version_table", database._VERSION_TABLE)
    with made.writing() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    made.close()
