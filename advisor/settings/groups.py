"""The groups of settings of what is kept, priced, fitted, planned, guarded and served."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, field_validator

from advisor.settings.piece import Minutes, Piece, Share

__all__ = [
    "DemandSettings",
    "DurationSettings",
    "GuardSettings",
    "PriceSettings",
    "ServerSettings",
    "SliceSettings",
    "StorageSettings",
    "WarmSettings",
]


class StorageSettings(Piece):
    """Where things are kept. Every unset place lies under ``home``."""

    home: Path = Field(Path(".gsa"), description="Folder of everything kept locally; made when first needed.")
    history_url: str | None = Field(None, description="SQLAlchemy URL of the history store; default SQLite in home.")
    tracking_uri: str | None = Field(None, description="MLflow tracking and registry URI; default SQLite in home.")
    artifacts: str | None = Field(None, description="Where a new MLflow experiment keeps artefacts; default in home.")
    snapshots: Path | None = Field(None, description="Folder of immutable Parquet training snapshots.")

    @field_validator("home", mode="before")
    @classmethod
    def _plain_path(cls, home: object) -> object:
        if not str(home).strip():
            raise ValueError("home must name a folder; leave it out for .gsa")
        if set(str(home)) & set("?#"):
            raise ValueError("home must not hold ? or #, which mean something else in the URLs made of it")
        return home

    @property
    def history(self) -> str:
        """URL of the history store."""
        return self.history_url or f"sqlite:///{(self.home / 'history.db').resolve()}"

    @property
    def tracking(self) -> str:
        """URI of the model registry."""
        return self.tracking_uri or f"sqlite:///{(self.home / 'registry.db').resolve()}"

    @property
    def artifact_root(self) -> str:
        """Root of the artefacts of new experiments."""
        return self.artifacts or (self.home / "artifacts").resolve().as_uri()

    @property
    def snapshot_folder(self) -> Path:
        """Folder of the training snapshots."""
        return self.snapshots or self.home / "snapshots"


class PriceSettings(Piece):
    """What things cost. The defaults are round figures to be replaced by the user's own."""

    per_gpu_hour: float = Field(2.5, gt=0, description="Price of one GPU-hour, in currency.")
    per_waiting_gpu_minute: float = Field(
        0.25, ge=0, description="Worth of one GPU-minute of avoided waiting; 6 GPU-minutes of price by default."
    )
    currency: str = Field("USD", min_length=1, max_length=8, description="Printed beside every amount.")
    boot_billed: bool = Field(True, description="Whether the cloud bills a node while it boots.")


class DurationSettings(Piece):
    """The duration model."""

    trees: int = Field(15, ge=1, le=500, description="Trees in each of the two forests; 60 gains about 1 %.")
    jobs: int = Field(30_000, ge=100, description="The last so many jobs are fitted on.")
    decay_days: float = Field(7.0, gt=0, description="A job's weight falls by e in so many days.")
    seed: int = Field(1, ge=0, description="Seed of the forests.")


class DemandSettings(Piece):
    """The demand model."""

    horizons_minutes: tuple[int, ...] = Field((5, 15, 30, 60, 1440), description="Minutes ahead, ascending.")
    timezone: str = Field("UTC", description="Zone of the calendar features: where the people are.")
    seed: int = Field(1, ge=0, description="Seed of the boosters.")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        if name not in available_timezones():
            raise ValueError(f"{name!r} is not an IANA time zone such as Europe/Berlin")
        return name

    @field_validator("horizons_minutes")
    @classmethod
    def _ascending(cls, horizons: tuple[int, ...]) -> tuple[int, ...]:
        if not horizons or list(horizons) != sorted(set(horizons)) or horizons[0] < 1:
            raise ValueError("horizons are whole minutes above 0, ascending, none twice")
        return horizons

    @property
    def zone(self) -> ZoneInfo:
        """The time zone itself."""
        return ZoneInfo(self.timezone)


class SliceSettings(Piece):
    """What a slice costs and may be. See the explanation of slice lengths in the guide."""

    switch_cost_minutes: float = Field(1.0, ge=0, le=120, description="Checkpoint + requeue + restore + relaunch.")
    switch_share: Share | None = Field(
        None, description="Measured share of boundaries that switch; unset: not measured."
    )
    reclaim_share: Share | None = Field(
        None, description="Measured share of an unused tail that others get to use; unset: not measured."
    )
    least_minutes: Minutes = Field(5.0, description="No slice is shorter.")
    urgent_per_hour: float = Field(
        0.0, ge=0, description="Urgent arrivals an hour; 0 leaves urgent waits out of account."
    )
    urgent_wait_minutes: Minutes | None = Field(None, description="Promise to urgent work; unset: none.")
    classes: int = Field(3, ge=1, le=3, description="At most so many slice lengths in a pool.")
    current_minutes: Minutes = Field(15.0, description="Slice length in use where the pool does not say.")
    saving_to_change: Share = Field(
        0.05, description="A new length must save this share of the cost to be recommended."
    )


class WarmSettings(Piece):
    """Warm capacity and keep-alive."""

    start_latency_seconds: float = Field(
        300.0, gt=0, le=3600, description="From asking for a node to a usable GPU, P90, until 5 starts are measured."
    )
    most_nodes: int = Field(8, ge=0, le=64, description="Never keep more warm nodes than this in a pool.")
    least_keep_alive_seconds: int = Field(60, ge=30, description="Below 30 s Karpenter cannot tell.")
    most_keep_alive_seconds: int = Field(7200, ge=60, description="Longest keep-alive ever recommended.")
    shared: bool = Field(False, description="The pools share capacity, so spares serve them all.")


class GuardSettings(Piece):
    """What may refuse a change."""

    stale_after_minutes: Minutes = Field(30.0, description="History older than this freezes every change.")
    cool_down_minutes: Minutes = Field(30.0, description="Quiet time after a change of the same field of a pool.")
    largest_step: float = Field(
        2.0,
        gt=1.0,
        description="A number may become at most so many times what it is now, or that part of it, at once; "
        "but by one node, or up to a keep-alive of 30 s, it always may, and warm nodes may all go.",
    )
    paused: bool = Field(False, description="The kill switch: nothing is changed while it is set.")


class ServerSettings(Piece):
    """The HTTP server."""

    host: str = Field("127.0.0.1", description="Loopback needs no authentication; anything else is refused for now.")
    port: int = Field(8080, ge=1, le=65535, description="TCP port of the API and the dashboard.")
    batch_limit: int = Field(1000, ge=1, le=100_000, description="Most jobs in one prediction request.")
    body_limit_bytes: int = Field(4_000_000, ge=1000, description="Largest request body.")
    refresh_seconds: float = Field(300.0, gt=0, description="Time between advice cycles.")
    take_in_seconds: float = Field(
        0.5, gt=0, description="Time between looks for new jobs and ends, which then count in every prediction."
    )
