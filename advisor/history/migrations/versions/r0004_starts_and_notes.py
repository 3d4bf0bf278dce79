"""The starts of nodes, and what was said of each source, the latest of each kind."""

from __future__ import annotations

import json
import re

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_PARTS = ("launched", "registered", "gpus_allocatable", "initialised", "pod_prepared", "image_pulled_and_started")

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def upgrade() -> None:
    """Make room for starts, and keep one note of each kind that was written with any ingest."""
    op.create_table(
        "gsa_starts",
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("claim", sa.Text(), primary_key=True),
        sa.Column("asked_us", sa.BigInteger(), primary_key=True),
        sa.Column("pool", sa.Text(), nullable=False),
        *(sa.Column(f"{part}_seconds", sa.Double()) for part in _PARTS),
    )
    op.create_index("gsa_starts_pool", "gsa_starts", ["pool", "asked_us"])
    op.create_table(
        "gsa_notes",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
    )
    op.create_index("gsa_notes_source", "gsa_notes", ["source", "kind"], unique=True)
    _move_notes()
    with op.batch_alter_table("gsa_ingests") as ingests:
        ingests.drop_column("notes")


def downgrade() -> None:
    """Drop everything this revision made; what was said is lost."""
    with op.batch_alter_table("gsa_ingests") as ingests:
        ingests.add_column(sa.Column("notes", sa.JSON(), nullable=False, server_default="[]"))
    op.drop_table("gsa_notes")
    op.drop_table("gsa_starts")


def _move_notes() -> None:
    connection = op.get_bind()
    latest: dict[tuple[str, str], str] = {}
    for source, notes in connection.execute(sa.text("SELECT source, notes FROM gsa_ingests ORDER BY id")).all():
        for note in json.loads(notes) if isinstance(notes, str) else notes:
            latest[source, _NUMBER.sub("#", note)] = note
    values = [{"source": source, "kind": kind, "note": note} for (source, kind), note in latest.items()]
    if values:
        words = "INSERT INTO gsa_notes (source, kind, note) VALUES (:source, :kind, :note)"
        connection.execute(sa.text(words), values)
