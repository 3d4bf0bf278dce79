"""One frozen tree of settings, read once at the edge from a TOML file and the environment.

Precedence: environment (``GSA_`` and ``__`` between levels, e.g. ``GSA_PRICES__PER_GPU_HOUR=3.1``),
then the file, then the defaults below. Each piece is handed down on its own: a planner receives its
prices, never the world.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from advisor.domain.plans import Mode
from advisor.errors import Refused, limit_and_remedy

__all__ = [
    "DemandSettings",
    "DurationSettings",
    "GuardSettings",
    "PriceSettings",
    "PrometheusOptions",
    "ServerSettings",
    "Settings",
    "SliceSettings",
    "StorageSettings",
    "TelemetrySettings",
    "WarmSettings",
    "load_settings",
]

_PREFIX = "GSA_"
_OTHER_NAMES = ("GSA_CONFIG", *(f"GSA_BENCH_{what}" for what in ("HOME", "TRACE", "FORMAT", "JOBS")))
"""Variables of ours that are no settings: the file of settings, and what benchmarks are run on."""
_HIDDEN = "(not shown)"
_SERVICE = re.compile(r"GSA(_[A-Z0-9_]+)?_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)")

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Minutes = Annotated[float, Field(gt=0.0, le=7 * 24 * 60)]


class _Piece(BaseModel):
    """A frozen group; a key nobody knows is an error, not a silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class StorageSettings(_Piece):
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


class PriceSettings(_Piece):
    """What things cost. The defaults are round figures to be replaced by the user's own."""

    per_gpu_hour: float = Field(2.5, gt=0, description="Price of one GPU-hour, in currency.")
    per_waiting_gpu_minute: float = Field(
        0.25, ge=0, description="Worth of one GPU-minute of avoided waiting; 6 GPU-minutes of price by default."
    )
    currency: str = Field("USD", min_length=1, max_length=8, description="Printed beside every amount.")
    boot_billed: bool = Field(True, description="Whether the cloud bills a node while it boots.")


class DurationSettings(_Piece):
    """The duration model."""

    trees: int = Field(15, ge=1, le=500, description="Trees in each of the two forests; 60 gains about 1 %.")
    jobs: int = Field(30_000, ge=100, description="The last so many jobs are fitted on.")
    decay_days: float = Field(7.0, gt=0, description="A job's weight falls by e in so many days.")
    seed: int = Field(1, ge=0, description="Seed of the forests.")


class DemandSettings(_Piece):
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


class SliceSettings(_Piece):
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


class WarmSettings(_Piece):
    """Warm capacity and keep-alive."""

    start_latency_seconds: float = Field(
        300.0, gt=0, le=3600, description="From asking for a node to a usable GPU, P90, until 5 starts are measured."
    )
    most_nodes: int = Field(8, ge=0, le=64, description="Never keep more warm nodes than this in a pool.")
    least_keep_alive_seconds: int = Field(60, ge=30, description="Below 30 s Karpenter cannot tell.")
    most_keep_alive_seconds: int = Field(7200, ge=60, description="Longest keep-alive ever recommended.")
    shared: bool = Field(False, description="The pools share capacity, so spares serve them all.")


class GuardSettings(_Piece):
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


class PrometheusOptions(_Piece):
    """The metrics server that history is read from: Prometheus, Thanos, Mimir or VictoriaMetrics.

    Secrets are read from files, or from the environment; they are never printed.
    """

    url: str | None = Field(
        None, description="Address as far as the API, path prefix included, such as http://host:9090."
    )
    bearer_token_file: Path | None = Field(None, description="File of a bearer token, read anew for each request.")
    bearer_token: SecretStr | None = Field(None, description="The token itself; meant for the variable.")
    username: str | None = Field(None, min_length=1, description="User of basic authentication.")
    password_file: Path | None = Field(None, description="File of that user's password.")
    password: SecretStr | None = Field(None, description="The password itself; meant for the variable.")
    ca_file: Path | None = Field(None, description="PEM file of the authorities to trust, instead of the usual ones.")
    headers: dict[str, SecretStr] = Field(
        default={}, description='Sent with each request, such as {"X-Scope-OrgID": "tenant"}.'
    )
    flavour: Literal["auto", "prometheus", "thanos", "mimir", "victoriametrics"] = Field(
        "auto", description="What kind of server it is; auto asks it."
    )
    step_seconds: int = Field(60, ge=1, le=3600, description="Time between two samples asked for.")
    days: float = Field(14.0, gt=0, le=3650, description="How far back history is read at first.")
    concurrency: int = Field(4, ge=1, le=32, description="Most requests at a time.")
    timeout_seconds: float = Field(60.0, gt=0, le=3600, description="Longest wait for an answer to begin or go on.")
    retries: int = Field(8, ge=0, le=20, description="Further tries of a request once the server has answered any.")
    cluster_label: str = Field(
        "cluster", pattern="^[a-zA-Z_][a-zA-Z0-9_]*$", description="Label that tells clusters apart on a shared server."
    )
    cluster: str | None = Field(None, min_length=1, description="Its value; only such series are asked for.")

    secret_or_may_hold_one: ClassVar[frozenset[str]] = frozenset({"url", "bearer_token", "password", "headers"})

    def replaced(self, **given: str | float | None) -> PrometheusOptions:
        """The same but for what was ``given``; None leaves a value as it is.

        Raises:
            Refused: a value that may not be.
        """
        news = {name: value for name, value in given.items() if value is not None}
        try:
            return PrometheusOptions(**{**{name: getattr(self, name) for name in type(self).model_fields}, **news})
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else "prometheus"
            limit, remedy = limit_and_remedy(first)
            raise Refused(field, _HIDDEN if field == "url" else first.get("input"), limit, remedy) from error

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        return None if url is None else _without_secrets(url)

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            text = value.get_secret_value()
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not (text.isascii() and text.isprintable()):
                raise ValueError("a header is a plain name and a line of printable ASCII")
        return headers

    @model_validator(mode="after")
    def _one_way_in(self) -> PrometheusOptions:
        token = self.bearer_token_file, self.bearer_token
        password = self.password_file, self.password
        if None not in token or None not in password:
            raise ValueError("a secret is given either as a file or as itself, not both")
        if (self.username is None) != (password == (None, None)):
            raise ValueError("username and a password (password_file) go together")
        if token != (None, None) and self.username is not None:
            raise ValueError("a bearer token and a username exclude each other")
        return self


def _without_secrets(url: str) -> str:
    """``url`` if it is an address and nothing else.

    Raises:
        ValueError: it is none, or holds a password or a query; what it holds is not repeated.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        known = None
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("the address is http:// or https://, a host, perhaps a port and a path")
    if "@" in parts.netloc:
        raise ValueError("the address holds no user or password: set username and password_file instead")
    if parts.query or parts.fragment:
        raise ValueError("the address ends before any ? or #: a secret goes into headers or bearer_token_file")
    return url


class ServerSettings(_Piece):
    """The HTTP server."""

    host: str = Field("127.0.0.1", description="Loopback needs no authentication; anything else is refused for now.")
    port: int = Field(8080, ge=1, le=65535, description="TCP port of the API and the dashboard.")
    batch_limit: int = Field(1000, ge=1, le=100_000, description="Most jobs in one prediction request.")
    body_limit_bytes: int = Field(4_000_000, ge=1000, description="Largest request body.")
    refresh_seconds: float = Field(300.0, gt=0, description="Time between advice cycles.")
    take_in_seconds: float = Field(
        0.5, gt=0, description="Time between looks for new jobs and ends, which then count in every prediction."
    )


class TelemetrySettings(_Piece):
    """How job history is read from live systems."""

    user_labels: tuple[str, ...] = Field(
        ("slice-advisor.io/user", "user", "username", "owner", "created-by", "hub.jupyter.org/username"),
        description="Labels of pods, and of what creates them, that name the user; the first that is there counts.",
    )


class Settings(BaseSettings):
    """The whole tree."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_nested_delimiter="__", frozen=True, extra="forbid", hide_input_in_errors=True
    )

    mode: Mode = Field(Mode.RECOMMEND, description="Observe, Recommend or Apply.")
    storage: StorageSettings = StorageSettings()
    prices: PriceSettings = PriceSettings()
    durations: DurationSettings = DurationSettings()
    demand: DemandSettings = DemandSettings()
    slices: SliceSettings = SliceSettings()
    warm: WarmSettings = WarmSettings()
    guards: GuardSettings = GuardSettings()
    prometheus: PrometheusOptions = PrometheusOptions()
    server: ServerSettings = ServerSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, whose content arrives as keyword arguments."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings


def load_settings(file: Path | None = None) -> Settings:
    """The settings of the environment over those of ``file`` (TOML) over the defaults.

    Raises:
        Refused: the file cannot be read or parsed, or a value is unknown or out of range; the field is named.
    """
    content: dict[str, Any] = {} if file is None else _parsed(file)
    _check_names(os.environ)
    try:
        return Settings(**content)
    except SettingsError as error:
        raise _unreadable(error) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "settings"
        limit, _ = limit_and_remedy(first)
        shown = _HIDDEN if _may_hold_a_secret(first["loc"]) else first.get("input")
        raise Refused(field, shown, limit, "Correct the file or the GSA_ variable.") from error


def _may_hold_a_secret(path: tuple[int | str, ...]) -> bool:
    """Whether what was given there must not be repeated: a secret, its misspelt key, or the group of both."""
    if not path or path[0] != "prometheus":
        return False
    open_keys = PrometheusOptions.model_fields.keys() - PrometheusOptions.secret_or_may_hold_one
    return len(path) == 1 or path[1] not in open_keys


def _known_names() -> tuple[str, ...]:
    """Every variable that sets something: each group as a whole (JSON), and each key of it."""
    names = list(Settings.model_fields)
    for group, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names += [f"{group}__{key}" for key in field.annotation.model_fields]
    return tuple(f"{_PREFIX}{name}".upper() for name in names)


def _check_names(variables: Mapping[str, str]) -> None:
    """Nothing where every variable of our prefix means something.

    Raises:
        Refused: one that nobody reads, so that a misspelt setting is no silence.
    """
    known = (*_known_names(), *_OTHER_NAMES)
    keys = [one.removeprefix(_PREFIX) for one in known if "__" in one or one == f"{_PREFIX}MODE"]
    for name, value in variables.items():
        if not name.upper().startswith(_PREFIX) or name.upper() in known or _of_a_service(name, value):
            continue
        near = get_close_matches(name.upper().removeprefix(_PREFIX), keys, n=1, cutoff=0.75)
        remedy = (
            f"Did you mean {_PREFIX}{near[0]}?" if near else "Unset it; the reference of settings lists every name."
        )
        raise Refused("environment", name, "no setting has this name", remedy)


def _of_a_service(name: str, value: str) -> bool:
    """What Kubernetes sets in every pod beside a Service whose name begins with ``gsa``."""
    return _SERVICE.fullmatch(name) is not None or (name.endswith("_PORT") and "://" in value)


def _unreadable(error: SettingsError) -> Refused:
    found = re.search(r'field "(\w+)"', str(error))
    field = found[1] if found else "environment"
    limit = "a list and a whole group are read from the environment as JSON"
    return Refused(field, None, limit, f"Write a list as [5, 15], and set each key by itself ({_PREFIX}...__...).")


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused("--config", str(file), "the file cannot be read", f"{error.strerror}. Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused("--config", str(file), f"it is not TOML: {error}", "Correct the syntax.") from error
