"""What of a job nobody knew before it was given a node."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_OF_PODS = "(source = 'prometheus' OR source LIKE 'prometheus/%' OR source LIKE 'kubernetes/%')"


def upgrade() -> None:
    """Make room for it, and say of jobs of pods what their nodes had told."""
    with op.batch_alter_table("gsa_jobs") as jobs:
        jobs.add_column(sa.Column("told_by_node", sa.Text()))
    # A request that named a kind of GPU cannot be told from a node that did; the kind is then not believed as asked.
    op.execute(
        "UPDATE gsa_jobs SET told_by_node = 'gpu_kind,image,nodes'"  # noqa: S608 - text of our own
        f" WHERE nodes IS NOT NULL AND {_OF_PODS}"
    )


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("gsa_jobs") as jobs:
        jobs.drop_column("told_by_node")
