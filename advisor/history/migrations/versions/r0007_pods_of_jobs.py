"""Which job each pod belongs to, as each source that reads pods told it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make room for pods; those of jobs stored before are known only where a pod's uid is the id of its job."""
    op.create_table(
        "gsa_pods",
        sa.Column("uid", sa.Text(), primary_key=True),
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("job_source", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
    )
    op.create_index("gsa_pods_job", "gsa_pods", ["job_source", "job_id"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("gsa_pods")
