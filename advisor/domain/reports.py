"""Measured quality: what was evaluated, on which data, under which protocol, beside which baseline."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from advisor.domain.units import utc

__all__ = [
    "DemandFan",
    "DemandReport",
    "DurationReport",
    "DurationScores",
    "HeadToHead",
    "HorizonScores",
    "OutcomeScores",
    "PromotionDecision",
    "ReleaseScores",
    "RunProtocol",
    "RunningScores",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProtocol:
    """How a figure was measured, so that it can be measured again."""

    data_digest: str
    rows: int
    split_time: datetime | None
    refits: int
    seed: int
    versions: dict[str, str]
    assumed: tuple[str, ...]
    synthetic: bool = False

    def to_json(self) -> dict[str, Any]:
        """As the ``protocol`` object of every evaluation."""
        document = asdict(self)
        document["split_time"] = None if self.split_time is None else utc(self.split_time, "split_time").isoformat()
        document["assumed"] = list(self.assumed)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationScores:
    """One predictor's quality on one set of jobs; logs are natural, of seconds.

    ``log_mae`` and ``within_*`` are measured at the median, ``typical_within_*`` at the centre of the
    heaviest factor-two window. ``coverage`` is the share of jobs that ended by the stated quantile, and
    ``reliability`` the same at every twentieth: at each level, the share of jobs whose duration was given no
    higher a probability of having ended. ``coverage_by_week`` and ``n_by_week`` count weeks from the split.
    Every figure is None, or its table empty, where ``n`` is 0.
    """

    n: int
    log_mae: float | None = None
    within_25_percent: float | None = None
    within_2x: float | None = None
    typical_within_25_percent: float | None = None
    typical_within_2x: float | None = None
    crps_log: float | None = None
    pinball_log: dict[str, float] = field(default_factory=dict)
    coverage: dict[str, float] = field(default_factory=dict)
    coverage_by_week: dict[str, list[float | None]] = field(default_factory=dict)
    n_by_week: list[int] = field(default_factory=list)
    reliability: dict[str, float] = field(default_factory=dict)
    crossings: int = 0
    not_positive: int = 0

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``predictors``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningScores:
    """How often the rest of a running job came within its quantiles: the answer at submission, given the age.

    ``n`` is the number of jobs that ran longer than the age; ``coverage`` is empty where there is none.
    """

    n: int
    coverage: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``running``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeScores:
    """How well the chance of one outcome was foretold, by the Brier score: the mean of (chance - what came)^2.

    ``rate`` is the share of jobs that ended so; ``brier_rate`` the score of whoever says, for every job, the
    share that had ended so before the split, ``brier_owner`` of whoever says the share among the last five
    of its owner and GPU count.
    """

    n: int
    rate: float
    brier: float
    brier_rate: float
    brier_owner: float

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``outcomes``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadToHead:
    """A registered model that has seen part of the scored jobs, against what would be served, on those it has not."""

    since: datetime
    model: DurationScores
    rival: DurationScores

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``versus``."""
        return {
            "since": utc(self.since, "since").isoformat(),
            "model": self.model.to_json(),
            "rival": self.rival.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationReport:
    """Every predictor on the same questions: overall, and apart by what was known, asked for and came of it.

    Each table maps a predictor to groups of jobs: by warm and cold owner, by GPU count, by decade of the
    actual duration (named by its lower bound, in seconds), by the key whose history carried the baseline,
    and, of the jobs that outlasted an age (in seconds), what became of the rest. ``outcomes`` is how well
    the model foretold how jobs end; ``versus`` holds registered models that were fitted after the split.
    """

    protocol: RunProtocol
    scores: dict[str, DurationScores]
    by_history: dict[str, dict[str, DurationScores]]
    by_gpus: dict[str, dict[str, DurationScores]]
    served: str
    by_decade: dict[str, dict[str, DurationScores]] = field(default_factory=dict)
    by_key: dict[str, dict[str, DurationScores]] = field(default_factory=dict)
    running: dict[str, dict[str, RunningScores]] = field(default_factory=dict)
    outcomes: dict[str, OutcomeScores] = field(default_factory=dict)
    versus: dict[str, HeadToHead] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The document of ``gsa evaluate durations``."""
        predictors: dict[str, Any] = {}
        tables = {"gpus": self.by_gpus, "decade": self.by_decade, "key": self.by_key}
        for name, scores in self.scores.items():
            by: dict[str, Any] = {kind: s.to_json() for kind, s in self.by_history.get(name, {}).items()}
            by |= {what: {group: s.to_json() for group, s in t.get(name, {}).items()} for what, t in tables.items()}
            running = {age: s.to_json() for age, s in self.running.get(name, {}).items()}
            predictors[name] = {**scores.to_json(), "by": by, "running": running}
        return {
            "protocol": self.protocol.to_json(),
            "predictors": predictors,
            "outcomes": {outcome: scores.to_json() for outcome, scores in self.outcomes.items()},
            "versus": {name: scores.to_json() for name, scores in self.versus.items()},
            "served": self.served,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonScores:
    """One pool at one horizon: losses of the model and the baselines on the same moments.

    ``coverage`` brackets each level, since changes have atoms: the share of outcomes below the
    quantile and the share up to it.
    """

    n: int
    pinball: dict[str, dict[str, float]]
    mae: dict[str, float]
    coverage: dict[str, tuple[float, float]]
    skill: float | None
    served: str

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``horizons``."""
        document = asdict(self)
        document["coverage"] = {level: list(bracket) for level, bracket in self.coverage.items()}
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandFan:
    """The last stretch of one pool's replay at one horizon: what was forecast for each moment, and what came.

    ``times`` are the moments forecast for, ``gpus`` the quantiles at ``levels`` of what would have been served,
    one row a moment, ``came`` the GPUs that were wanted then.
    """

    pool: str
    horizon_minutes: int
    times: tuple[datetime, ...]
    levels: tuple[float, ...]
    gpus: tuple[tuple[float, ...], ...]
    came: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseScores:
    """One pool at one horizon: quantile losses in GPUs ``without`` releases, with ``predicted`` and with ``true`` ones.

    ``correlation`` is that of expected with true releases, None where either never varied.
    """

    n: int
    pinball: dict[str, dict[str, float]]
    correlation: float | None

    def share_of_gain(self, level: str) -> float | None:
        """What predicted durations give of that which true ends would; None where those give less than 1 %.

        Below 0 where predictions made the forecast worse.
        """
        without, predicted, true = (self.pinball[name][level] for name in ("without", "predicted", "true"))
        return (without - predicted) / (without - true) if true < 0.99 * without else None

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``releases``."""
        shares = {level: self.share_of_gain(level) for level in self.pinball["without"]}
        return {**asdict(self), "share_of_gain": shares}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandReport:
    """Every pool at every horizon (keys are whole minutes).

    ``releases`` tells what predicted durations are worth to the lower quantiles; empty where the series came
    without its jobs. ``fans`` are the last forecasts of the replay, to be drawn.
    """

    protocol: RunProtocol
    pools: dict[str, dict[int, HorizonScores]]
    releases: dict[str, dict[int, ReleaseScores]] = field(default_factory=dict)
    fans: tuple[DemandFan, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The document of ``gsa evaluate demand``."""
        return {
            "protocol": self.protocol.to_json(),
            "pools": {
                pool: {"horizons": {str(h): scores.to_json() for h, scores in horizons.items()}}
                for pool, horizons in self.pools.items()
            },
            **({"releases": self._releases()} if self.releases else {}),
        }

    def _releases(self) -> dict[str, Any]:
        return {pool: {str(h): one.to_json() for h, one in scores.items()} for pool, scores in self.releases.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionDecision:
    """Whether a fitted model may be served, and why: it must beat the baseline and be no worse than the champion.

    ``kept`` says that it might be, and that the champion stays because too few jobs have come to tell the two apart.
    """

    promoted: bool
    version: str | None
    reasons: tuple[str, ...]
    measures: dict[str, float]
    kept: bool = False
