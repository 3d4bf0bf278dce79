"""What a job went through before it started, and what it did with its GPUs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_NUMBERS = (
    "image_pull_seconds",
    "usage_compute_mean",
    "usage_compute_p95",
    "usage_compute_peak",
    "usage_memory_peak_bytes",
    "usage_energy_joules",
    "usage_idle_share",
)
_ADDED: dict[str, sa.types.TypeEngine[Any]] = {
    "scheduled_us": sa.BigInteger(),
    "created_by": sa.Text(),
    "restarts": sa.BigInteger(),
    "evictions": sa.BigInteger(),
    "usage_compute_source": sa.Text(),
    "usage_estimated": sa.Boolean(),
    **{name: sa.Double() for name in _NUMBERS},
}


def upgrade() -> None:
    """Add the columns; jobs stored before do not know them."""
    for name, kind in _ADDED.items():
        op.add_column("gsa_jobs", sa.Column(name, kind))
    op.add_column("gsa_jobs", sa.Column("paused_seconds", sa.Double(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop what this revision added."""
    with op.batch_alter_table("gsa_jobs") as table:
        for name in (*_ADDED, "paused_seconds"):
            table.drop_column(name)
