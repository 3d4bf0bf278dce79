"""The fitted demand model: what training hands over, and nothing that could train.

A folder holds ``demand.json`` and one LightGBM text file a booster; loading runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import utc
from advisor.domain.warm_rules import WarmRule
from advisor.errors import Refused
from advisor.features.demand_releases import RELEASE_COLUMNS
from advisor.features.demand_table import demand_schema
from advisor.features.table import FeatureSchema
from advisor.forecast.demand_baselines import LEVELS, BaselineTables
from advisor.forecast.demand_booster import ClassBooster
from advisor.forecast.demand_gate import GateVerdict, LowerVerdict
from advisor.forecast.demand_law import ChangeClasses, ChangeLaw
from advisor.forecast.demand_rise import RiseFrequencies, RiseModel

__all__ = ["ChangeModel", "DemandModel", "PoolHorizon", "PoolRecord"]

Floats = NDArray[np.float64]

_FILE = "demand.json"
_FORMAT = 2


@dataclass(frozen=True, slots=True, eq=False)
class ChangeModel:
    """The law of the change over one horizon, in nodes, for one group of pools."""

    classes: ChangeClasses
    booster: ClassBooster

    def law(self, rows: Floats) -> ChangeLaw:
        """The law of each row of features."""
        return self.classes.law(self.booster.probabilities(rows))


@dataclass(frozen=True, slots=True, eq=False)
class PoolHorizon:
    """One pool at one horizon: what to serve, the levels to ask of the law, and what the baselines know.

    ``lower`` says whether the quantiles below the median are told what running jobs may release; None where nothing
    was known of that.
    """

    verdict: GateVerdict
    levels: Floats
    tables: BaselineTables
    lower: LowerVerdict | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PoolRecord:
    """What was learnt of one pool: the group whose model speaks for it, its horizons, its rises, its rule of warmth."""

    group: str
    horizons: Mapping[int, PoolHorizon]
    rises: RiseFrequencies
    rise_verdict: GateVerdict
    known_minutes: float
    warm_rule: WarmRule | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class DemandModel:
    """Everything fitted for all pools, immutable.

    ``changes`` and ``rises`` are by group of pools with changes of like size; a horizon without a model
    was constant. ``extra_state`` names further columns that were fitted on. ``lower`` holds models that know
    releases of running jobs as well, by group and horizon.
    """

    step_minutes: int
    horizons_minutes: tuple[int, ...]
    rise_horizons_minutes: tuple[int, ...]
    extra_state: tuple[str, ...]
    changes: Mapping[str, Mapping[int, ChangeModel]]
    rises: Mapping[str, RiseModel]
    pools: Mapping[str, PoolRecord]
    fitted_until: datetime
    lower: Mapping[str, Mapping[int, ChangeModel]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the time in UTC."""
        object.__setattr__(self, "fitted_until", utc(self.fitted_until, "fitted_until"))

    @cached_property
    def schema(self) -> FeatureSchema:
        """The columns that every booster reads."""
        return demand_schema(self.extra_state)

    def change_model(self, pool: str, horizon_minutes: int) -> ChangeModel | None:
        """The model that speaks for ``pool`` at a horizon, None where none was fitted."""
        record = self.pools.get(pool)
        return None if record is None else self.changes.get(record.group, {}).get(horizon_minutes)

    def lower_model(self, pool: str, horizon_minutes: int) -> ChangeModel | None:
        """The model that knows releases and speaks below the median of ``pool``; None where it must not."""
        record = self.pools.get(pool)
        at = None if record is None else record.horizons.get(horizon_minutes)
        if record is None or at is None or at.lower is None or not at.lower.served:
            return None
        return self.lower.get(record.group, {}).get(horizon_minutes)

    def rise_model(self, pool: str) -> RiseModel | None:
        """The model of rises that speaks for ``pool``, None where none was fitted."""
        record = self.pools.get(pool)
        return None if record is None else self.rises.get(record.group)

    def save(self, folder: Path) -> None:
        """Write the model into ``folder``, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        document = {
            "format": _FORMAT,
            "step_minutes": self.step_minutes,
            "horizons_minutes": list(self.horizons_minutes),
            "rise_horizons_minutes": list(self.rise_horizons_minutes),
            "extra_state": list(self.extra_state),
            "columns": list(self.schema.names),
            "fingerprint": self.schema.fingerprint,
            "levels": list(LEVELS),
            "fitted_until": self.fitted_until.isoformat(),
            "changes": _save_changes(folder, "change", self.changes),
            "lower": _save_changes(folder, "lower", self.lower),
            "rises": self._save_rises(folder),
            "pools": {name: _record_to_json(record) for name, record in self.pools.items()},
        }
        (folder / _FILE).write_text(json.dumps(document, allow_nan=False), encoding="utf-8")

    def _save_rises(self, folder: Path) -> dict[str, Any]:
        return {
            group: model.to_json({h: b.save(folder / f"rise_{group}_{h}.txt") for h, b in model.boosters.items()})
            for group, model in self.rises.items()
        }

    @classmethod
    def load(cls, folder: Path) -> DemandModel:
        """What :meth:`save` wrote, predicting the same to the bit.

        Raises:
            Refused: the folder holds no such model, or one fitted on other columns than this program makes.
        """
        try:
            document = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refused("model", folder.name, f"it has no readable {_FILE}", "Fit the model again.") from error
        if document.get("format") != _FORMAT or document.get("levels") != list(LEVELS):
            limit = f"this version of the program reads format {_FORMAT} with {len(LEVELS)} levels"
            raise Refused("model format", document.get("format"), limit, "Fit the model again.")
        try:
            return _model_from_json(cls, folder, document)
        except (KeyError, TypeError, ValueError) as error:
            raise Refused("model", folder.name, f"{_FILE} is incomplete", "Fit the model again.") from error


def _save_changes(
    folder: Path, kind: str, changes: Mapping[str, Mapping[int, ChangeModel]]
) -> dict[str, dict[str, dict[str, Any]]]:
    return {
        group: {
            str(h): {
                "classes": model.classes.to_json(),
                "booster": model.booster.save(folder / f"{kind}_{group}_{h}.txt"),
            }
            for h, model in models.items()
        }
        for group, models in changes.items()
    }


def _changes_from_json(folder: Path, document: dict[str, Any], columns: int) -> dict[str, dict[int, ChangeModel]]:
    return {
        group: {
            int(h): ChangeModel(
                ChangeClasses.from_json(one["classes"]), ClassBooster.load(folder, one["booster"], columns)
            )
            for h, one in models.items()
        }
        for group, models in document.items()
    }


def _model_from_json(kind: type[DemandModel], folder: Path, document: dict[str, Any]) -> DemandModel:
    extra = tuple(document["extra_state"])
    schema = demand_schema(extra)
    schema.require(document["columns"], document["fingerprint"])
    return kind(
        step_minutes=int(document["step_minutes"]),
        horizons_minutes=tuple(document["horizons_minutes"]),
        rise_horizons_minutes=tuple(document["rise_horizons_minutes"]),
        extra_state=extra,
        changes=_changes_from_json(folder, document["changes"], len(schema)),
        lower=_changes_from_json(folder, document.get("lower", {}), len(schema) + len(RELEASE_COLUMNS)),
        rises={group: _rise_from_json(folder, one, len(schema)) for group, one in document["rises"].items()},
        pools={name: _record_from_json(one) for name, one in document["pools"].items()},
        fitted_until=datetime.fromisoformat(document["fitted_until"]),
    )


def _rise_from_json(folder: Path, document: dict[str, Any], columns: int) -> RiseModel:
    return RiseModel(
        boosters={int(h): ClassBooster.load(folder, one["booster"], columns) for h, one in document.items()},
        within={int(h): np.array(one["within"], dtype=np.float64) for h, one in document.items()},
    )


def _record_to_json(record: PoolRecord) -> dict[str, Any]:
    return {
        "group": record.group,
        "known_minutes": record.known_minutes,
        "warm_rule": None if record.warm_rule is None else record.warm_rule.to_json(),
        "rise_verdict": record.rise_verdict.to_json(),
        "rises": record.rises.table.tolist(),
        "horizons": {
            str(h): {
                "verdict": at.verdict.to_json(),
                "levels": at.levels.tolist(),
                "tables": at.tables.to_json(),
                "lower": None if at.lower is None else at.lower.to_json(),
            }
            for h, at in record.horizons.items()
        },
    }


def _record_from_json(document: dict[str, Any]) -> PoolRecord:
    return PoolRecord(
        group=str(document["group"]),
        horizons={
            int(h): PoolHorizon(
                GateVerdict(**at["verdict"]),
                np.array(at["levels"], dtype=np.float64),
                BaselineTables.from_json(at["tables"]),
                LowerVerdict(**at["lower"]) if at.get("lower") else None,
            )
            for h, at in document["horizons"].items()
        },
        rises=RiseFrequencies(np.array(document["rises"], dtype=np.float64)),
        rise_verdict=GateVerdict(**document["rise_verdict"]),
        known_minutes=float(document["known_minutes"]),
        warm_rule=None if document["warm_rule"] is None else WarmRule.from_json(document["warm_rule"]),
    )
