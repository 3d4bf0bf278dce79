"""The tables as SQLAlchemy sees them; ``migrations`` creates and changes them, a test keeps the two equal.

Every name starts with ``gsa_``, so that a PostgreSQL database may be shared with the model registry.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Index, Integer, MetaData, Table, Text

from advisor.domain.start_latency import StartPart

__all__ = ["ADVICE", "INGESTS", "JOBS", "LEDGER", "METADATA", "NOTES", "PODS", "PROMISES", "REJECTIONS", "STARTS"]

METADATA = MetaData()

# ``end_told`` is who told the end where not the job itself; ``runs`` is a JSON list of [start, end, failed, restarts]
# where a job ran more than once. ``revision`` is that of the ingest which last changed the row, or an earlier one that
# no reader has seen yet.
JOBS = Table(
    "gsa_jobs",
    METADATA,
    Column("source", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("submit_us", BigInteger, nullable=False),
    Column("gpus", Double, nullable=False),
    Column("start_us", BigInteger),
    Column("end_us", BigInteger),
    Column("outcome", Text),
    Column("last_seen_us", BigInteger),
    Column("user", Text),
    Column("namespace", Text),
    Column("name", Text),
    Column("image", Text),
    Column("gpu_kind", Text),
    Column("pool", Text),
    Column("cpus", Double),
    Column("nodes", BigInteger),
    Column("priority", BigInteger),
    Column("time_limit_seconds", Double),
    Column("start_assumed", Boolean, nullable=False),
    Column("calendar_known", Boolean, nullable=False),
    Column("scheduled_us", BigInteger),
    Column("created_by", Text),
    Column("restarts", BigInteger),
    Column("evictions", BigInteger),
    Column("paused_seconds", Double, nullable=False, server_default="0"),
    Column("image_pull_seconds", Double),
    Column("told_by_node", Text),
    Column("usage_compute_mean", Double),
    Column("usage_compute_p95", Double),
    Column("usage_compute_peak", Double),
    Column("usage_compute_source", Text),
    Column("usage_memory_peak_bytes", Double),
    Column("usage_energy_joules", Double),
    Column("usage_idle_share", Double),
    Column("usage_estimated", Boolean),
    Column("end_told", Text),
    Column("runs", Text),
    Column("revision", BigInteger, nullable=False, server_default="0"),
    Index("gsa_jobs_submit", "submit_us"),
    Index("gsa_jobs_start", "start_us"),
    Index("gsa_jobs_end", "end_us"),
    Index("gsa_jobs_last_seen", "last_seen_us"),
    Index("gsa_jobs_revision", "revision"),
)

# One row per pod and source that told of it; the job is stored under the source that told of that one first.
PODS = Table(
    "gsa_pods",
    METADATA,
    Column("uid", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("job_source", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Index("gsa_pods_job", "job_source", "job_id"),
)

# One row per ingest that changed anything; one that changed no job only moves the last row of its source on.
INGESTS = Table(
    "gsa_ingests",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("time_us", BigInteger, nullable=False),
    Column("added", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("unchanged", BigInteger, nullable=False),
    Column("watermark_us", BigInteger),
    Column("synthetic", Boolean, nullable=False),
    Index("gsa_ingests_source", "source"),
)

# What had to be assumed of a source; ``kind`` is the note without its numbers, and each kind is there once.
NOTES = Table(
    "gsa_notes",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("note", Text, nullable=False),
    Index("gsa_notes_source", "source", "kind", unique=True),
)

# One row per node that was started; a part is null while it is not known.
STARTS = Table(
    "gsa_starts",
    METADATA,
    Column("source", Text, primary_key=True),
    Column("claim", Text, primary_key=True),
    Column("asked_us", BigInteger, primary_key=True),
    Column("pool", Text, nullable=False),
    *(Column(f"{part}_seconds", Double) for part in StartPart),
    Index("gsa_starts_pool", "pool", "asked_us"),
)

# A rejection is recognised by its first example: reading the same file again does not count it twice.
REJECTIONS = Table(
    "gsa_rejections",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("example", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    Index("gsa_rejections_source", "source", "reason"),
)

ADVICE = Table(
    "gsa_advice",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("time_us", BigInteger, nullable=False),
    Column("document", JSON, nullable=False),
    Index("gsa_advice_time", "time_us"),
)

LEDGER = Table(
    "gsa_ledger",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("decision", Text, nullable=False, unique=True),
    Column("time_us", BigInteger, nullable=False),
    Column("pool", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("field", Text, nullable=False),
    Column("old", JSON(none_as_null=True)),
    Column("new", JSON(none_as_null=True)),
    Column("wanted", JSON(none_as_null=True)),
    Column("verdict", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("models", JSON, nullable=False),
    Index("gsa_ledger_time", "time_us"),
    Index("gsa_ledger_pool", "pool", "field", "time_us"),
)

# One row per job, written once; ``law`` is a JSON list of [level, seconds], ``reasons`` one of sentences.
PROMISES = Table(
    "gsa_promises",
    METADATA,
    Column("source", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("asked_us", BigInteger, nullable=False),
    Column("replayed", Boolean, nullable=False),
    Column("served", Text, nullable=False),
    Column("model_version", Text),
    Column("key", Text, nullable=False),
    Column("key_count", BigInteger, nullable=False),
    Column("p50_seconds", Double, nullable=False),
    Column("p90_seconds", Double, nullable=False),
    Column("typical_seconds", Double, nullable=False),
    Column("mean_seconds", Double, nullable=False),
    Column("law", JSON, nullable=False),
    Column("reasons", JSON, nullable=False),
    Index("gsa_promises_id", "id"),
)
