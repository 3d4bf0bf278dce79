"""Who told the end of a job, and its runs where there were several."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make room for both; what a metrics server had made cancelled was merely no longer told of."""
    with op.batch_alter_table("gsa_jobs") as jobs:
        jobs.add_column(sa.Column("end_told", sa.Text()))
        jobs.add_column(sa.Column("runs", sa.Text()))
    op.execute(
        "UPDATE gsa_jobs SET end_told = 'nobody' WHERE outcome = 'cancelled'"
        " AND (source = 'prometheus' OR source LIKE 'prometheus/%')"
    )


def downgrade() -> None:
    """Drop both."""
    with op.batch_alter_table("gsa_jobs") as jobs:
        jobs.drop_column("runs")
        jobs.drop_column("end_told")
