"""The model versions to serve: loaded from the registry, or passed over with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import structlog

from advisor.domain.forecasts import DurationForecast
from advisor.errors import AdvisorError, Refused, Transient
from advisor.forecast.demand_model import DemandModel
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.registry import DEMAND, DURATIONS, ModelRegistry, Registered

__all__ = ["Champions"]

Model = TypeVar("Model", DurationModel, DemandModel)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Champions:
    """The versions to serve; None where none was promoted or its artefact cannot be read.

    ``named`` are the versions that the registry named, readable or not.
    """

    durations: DurationModel | None
    demand: DemandModel | None
    versions: Mapping[str, str | None]
    named: Mapping[str, str | None]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, registry: ModelRegistry) -> Champions:
        """Load both champions; one that cannot be read is passed over, with the reason, and baselines answer."""
        reasons: list[str] = []
        durations, demand = _champion(registry, DURATIONS, reasons), _champion(registry, DEMAND, reasons)
        duration_model = _loaded(durations, DurationModel.load, reasons)
        demand_model = _loaded(demand, DemandModel.load, reasons)
        for reason in reasons:
            _log.warning("champion_passed_over", reason=reason)
        named = {
            DURATIONS: None if durations is None else durations.version,
            DEMAND: None if demand is None else demand.version,
        }
        return cls(
            durations=duration_model,
            demand=demand_model,
            versions={
                DURATIONS: None if duration_model is None else named[DURATIONS],
                DEMAND: None if demand_model is None else named[DEMAND],
            },
            named=named,
            reasons=tuple(reasons),
        )

    def current(self, registry: ModelRegistry) -> bool:
        """Whether the registry still names these versions; while it cannot be reached, the last good ones stay."""
        try:
            named = {name: registry.champion_version(name) for name in (DURATIONS, DEMAND)}
        except Transient as error:
            _log.warning("registry_unreachable", reason=str(error))
            return True
        return named == dict(self.named)

    def named_by_registry(self, forecast: DurationForecast) -> DurationForecast:
        """``forecast`` under the version that people know the model by: the registry's."""
        known = None if forecast.model_version is None else self.versions[DURATIONS]
        return replace(forecast, model_version=known)


def _loaded(champion: Registered | None, load: Callable[[Path], Model], reasons: list[str]) -> Model | None:
    if champion is None:
        return None
    try:
        return load(champion.folder)
    except Refused as error:
        reasons.append(f"the champion of {champion.name} cannot be served: {error}")
        return None


def _champion(registry: ModelRegistry, name: str, reasons: list[str]) -> Registered | None:
    try:
        champion = registry.champion(name)
    except AdvisorError as error:
        reasons.append(str(error))
        return None
    if champion is None:
        reasons.append(f"no version of {name} has been promoted: baselines answer (train one: gsa train)")
    return champion
