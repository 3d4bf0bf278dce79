"""The revision of each job, so that readers can ask for what is new, and the promises made to jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Mark every job as known since ever, and make room for promises."""
    op.add_column("gsa_jobs", sa.Column("revision", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_index("gsa_jobs_revision", "gsa_jobs", ["revision"])
    op.create_table(
        "gsa_promises",
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("asked_us", sa.BigInteger(), nullable=False),
        sa.Column("replayed", sa.Boolean(), nullable=False),
        sa.Column("served", sa.Text(), nullable=False),
        sa.Column("model_version", sa.Text()),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("key_count", sa.BigInteger(), nullable=False),
        sa.Column("p50_seconds", sa.Double(), nullable=False),
        sa.Column("p90_seconds", sa.Double(), nullable=False),
        sa.Column("typical_seconds", sa.Double(), nullable=False),
        sa.Column("mean_seconds", sa.Double(), nullable=False),
        sa.Column("law", sa.JSON(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
    )
    op.create_index("gsa_promises_id", "gsa_promises", ["id"])


def downgrade() -> None:
    """Drop everything this revision made."""
    op.drop_table("gsa_promises")
    op.drop_index("gsa_jobs_revision", "gsa_jobs")
    with op.batch_alter_table("gsa_jobs") as jobs:
        jobs.drop_column("revision")
