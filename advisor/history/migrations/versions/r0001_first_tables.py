"""The first tables: jobs, ingests, rejections, advice, ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_JOB_INDEXES = ("submit", "start", "end", "last_seen")


def upgrade() -> None:
    """Create every table and its indexes."""
    _create_jobs()
    _create_ingests()
    _create_rejections()
    _create_advice()
    _create_ledger()


def downgrade() -> None:
    """Drop everything this revision made."""
    for table in ("gsa_ledger", "gsa_advice", "gsa_rejections", "gsa_ingests", "gsa_jobs"):
        op.drop_table(table)


def _create_jobs() -> None:
    op.create_table(
        "gsa_jobs",
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("submit_us", sa.BigInteger(), nullable=False),
        sa.Column("gpus", sa.Double(), nullable=False),
        sa.Column("start_us", sa.BigInteger()),
        sa.Column("end_us", sa.BigInteger()),
        sa.Column("outcome", sa.Text()),
        sa.Column("last_seen_us", sa.BigInteger()),
        sa.Column("user", sa.Text()),
        sa.Column("namespace", sa.Text()),
        sa.Column("name", sa.Text()),
        sa.Column("image", sa.Text()),
        sa.Column("gpu_kind", sa.Text()),
        sa.Column("pool", sa.Text()),
        sa.Column("cpus", sa.Double()),
        sa.Column("nodes", sa.BigInteger()),
        sa.Column("priority", sa.BigInteger()),
        sa.Column("time_limit_seconds", sa.Double()),
        sa.Column("start_assumed", sa.Boolean(), nullable=False),
        sa.Column("calendar_known", sa.Boolean(), nullable=False),
    )
    for time in _JOB_INDEXES:
        op.create_index(f"gsa_jobs_{time}", "gsa_jobs", [f"{time}_us"])


def _create_ingests() -> None:
    op.create_table(
        "gsa_ingests",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("unchanged", sa.BigInteger(), nullable=False),
        sa.Column("watermark_us", sa.BigInteger()),
        sa.Column("synthetic", sa.Boolean(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
    )
    op.create_index("gsa_ingests_source", "gsa_ingests", ["source"])


def _create_rejections() -> None:
    op.create_table(
        "gsa_rejections",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("example", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
    )
    op.create_index("gsa_rejections_source", "gsa_rejections", ["source", "reason"])


def _create_advice() -> None:
    op.create_table(
        "gsa_advice",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
    )
    op.create_index("gsa_advice_time", "gsa_advice", ["time_us"])


def _create_ledger() -> None:
    op.create_table(
        "gsa_ledger",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("decision", sa.Text(), nullable=False, unique=True),
        sa.Column("time_us", sa.BigInteger(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("old", sa.JSON()),
        sa.Column("new", sa.JSON()),
        sa.Column("wanted", sa.JSON()),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("models", sa.JSON(), nullable=False),
    )
    op.create_index("gsa_ledger_time", "gsa_ledger", ["time_us"])
    op.create_index("gsa_ledger_pool", "gsa_ledger", ["pool", "field", "time_us"])
