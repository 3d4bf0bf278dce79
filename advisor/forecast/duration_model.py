"""The fitted duration model: forests and hazard as text, and what is needed to read them. It can only predict."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.units import utc
from advisor.errors import AdvisorError, Refused
from advisor.features.duration import DURATION_SCHEMA, USAGE_SCHEMA, schema_of
from advisor.features.table import FeatureSchema, KnownWhen
from advisor.forecast.baselines import NO_HISTORY
from advisor.forecast.blend import BlendSettings
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.grid import LogGrid
from advisor.forecast.hazard import HazardBins, HazardModel
from advisor.forecast.questions import Question

__all__ = ["UNKNOWN", "DurationModel"]

Floats = NDArray[np.float64]
LeafIndices = NDArray[np.int32]

_FORMAT = 2
UNKNOWN = "unknown_"
"""How a reason begins that says which feature was unknown."""

_DOCUMENT = "model.json"
_DIGEST = "model.sha256"
_HAZARD = "hazard.txt"
_REFIT = "Fit the model again, or copy the whole folder again."


@dataclass(frozen=True, kw_only=True, eq=False)
class DurationModel:
    """Everything a fit leaves behind; immutable, saved as text and JSON.

    ``forests`` are LightGBM models as text, each of ``trees`` trees of at most ``leaves`` leaves; ``hazard`` is the
    second opinion they are mixed with. Jobs submitted before ``leaves_since`` are too old to count in leaves.
    ``never_missing`` names the columns that had a value in every row of the fit: a tree reads a gap there
    as zero, so a gap is never shown to it. Of these, what the request may leave out and what only others' jobs
    can tell is filled with ``usual``. ``decay_days`` is the age at which a job's weight has fallen to 1/e.
    ``questions`` is the calibration window, asked and answered by models that had not seen those jobs.

    Raises:
        Refused: the columns are not those of this version of the program.
    """

    forests: tuple[str, ...]
    hazard: HazardModel
    trees: tuple[int, ...]
    leaves: int
    fitted_at: datetime
    leaves_since: datetime
    jobs: int
    columns: tuple[str, ...]
    fingerprint: str
    never_missing: tuple[str, ...]
    usual: Mapping[str, float]
    prior: DurationDistribution
    decay_days: float
    grid: LogGrid = field(default_factory=LogGrid)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    blend: BlendSettings = field(default_factory=BlendSettings)
    questions: tuple[Question, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the time in UTC and check the columns."""
        object.__setattr__(self, "fitted_at", utc(self.fitted_at, "fitted_at"))
        object.__setattr__(self, "leaves_since", utc(self.leaves_since, "leaves_since"))
        self.schema.require(self.columns, self.fingerprint)

    @cached_property
    def schema(self) -> FeatureSchema:
        """The features it was fitted on: those of every history, and those of usage that its own had."""
        return schema_of(self.columns)

    @property
    def with_usage(self) -> bool:
        """Whether it asks what the jobs of a key did with their GPUs."""
        return len(self.columns) > len(DURATION_SCHEMA)

    def __eq__(self, other: object) -> bool:
        """Equal where everything saved is equal."""
        return isinstance(other, DurationModel) and self.version == other.version

    def __hash__(self) -> int:
        """Hash of the version."""
        return hash(self.version)

    @cached_property
    def version(self) -> str:
        """A digest of everything saved: two models with the same version answer the same."""
        return hashlib.sha256(self._text.encode()).hexdigest()[:12]

    @cached_property
    def _text(self) -> str:
        document: dict[str, Any] = {
            "format": _FORMAT,
            "forests": [_digest(text) for text in self.forests],
            "trees": list(self.trees),
            "leaves": self.leaves,
            "fitted_at": self.fitted_at.isoformat(),
            "leaves_since": self.leaves_since.isoformat(),
            "jobs": self.jobs,
            "columns": list(self.columns),
            "fingerprint": self.fingerprint,
            "never_missing": list(self.never_missing),
            "usual": dict(self.usual),
            "prior": {"log_edges": self.prior.log_edges.tolist(), "cdf": self.prior.cdf.tolist()},
            "decay_days": self.decay_days,
            "grid": {"step": self.grid.step, "cells": self.grid.cells, "tail": self.grid.tail},
            "calibration": asdict(self.calibration),
            "blend": asdict(self.blend),
            "hazard": {"model": _digest(self.hazard.text), "cuts": list(self.hazard.bins.cuts)},
            "questions": [question.to_json() for question in self.questions],
            "settings": dict(self.settings),
        }
        return json.dumps(document, indent=1, sort_keys=True, allow_nan=False)

    def save(self, folder: Path) -> None:
        """Write the model into ``folder``, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        for number, text in enumerate(self.forests):
            (folder / _forest_name(number)).write_text(text, encoding="utf-8")
        (folder / _HAZARD).write_text(self.hazard.text, encoding="utf-8")
        (folder / _DOCUMENT).write_text(self._text, encoding="utf-8")
        (folder / _DIGEST).write_text(_digest(self._text), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> DurationModel:
        """The model saved in ``folder``.

        Raises:
            Refused: a file is missing, damaged, or of another version of the program.
        """
        try:
            digest = (folder / _DIGEST).read_text(encoding="utf-8").strip()
            document = json.loads(_read(folder, _DOCUMENT, digest))
            _check_format(document["format"])
            names = [_forest_name(number) for number in range(len(document["forests"]))]
            forests = tuple(map(partial(_read, folder), names, document["forests"]))
            return _from_json(document, forests, _read(folder, _HAZARD, document["hazard"]["model"]))
        except Refused:
            raise
        except (AdvisorError, OSError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise Refused(
                "model folder", str(folder), f"it cannot be read as a duration model ({error})", _REFIT
            ) from error

    @cached_property
    def _boosters(self) -> tuple[lightgbm.Booster, ...]:
        return tuple(lightgbm.Booster(model_str=text) for text in self.forests)

    def leaves_of(self, rows: Floats) -> LeafIndices:
        """Which leaf of each tree every row falls into: (rows, trees of all forests)."""
        found = [
            np.asarray(booster.predict(rows, pred_leaf=True, num_threads=1)).reshape(len(rows), -1)
            for booster in self._boosters
        ]
        return np.concatenate(found, axis=1).astype(np.int32)

    def contributions(self, rows: Floats) -> Floats:
        """How far each feature of every row pushed the forests' mean, in their own units: (rows, features)."""
        found = [
            np.asarray(booster.predict(rows, pred_contrib=True, num_threads=1)).reshape(len(rows), -1)[:, :-1]
            for booster in self._boosters
        ]
        mean: Floats = np.add.reduce(found) / len(found)
        return mean

    @cached_property
    def _gaps(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]:
        """Per column: must a gap go to the baseline; may it be filled; with what."""
        never = np.array([name in self.never_missing for name in self.columns])
        asked = np.array([f.known_when is not KnownWhen.HISTORY for f in self.schema.features])
        usual = np.array([self.usual.get(name, math.nan) for name in self.columns])
        return never & ~asked, never & asked, usual

    def own(self, rows: Floats) -> Floats:
        """``rows`` of any history with the columns of this model and no others: NaN for usage that they lack."""
        if rows.shape[1] == len(self.columns):
            return rows
        if not self.with_usage:
            return rows[:, : len(self.columns)]
        if rows.shape[1] == len(DURATION_SCHEMA):
            rows = np.pad(rows, ((0, 0), (0, len(USAGE_SCHEMA) - len(DURATION_SCHEMA))), constant_values=math.nan)
        return rows[:, [USAGE_SCHEMA.names.index(name) for name in self.columns]]

    def readable(self, rows: Floats) -> tuple[Floats, NDArray[np.bool_], list[tuple[str, ...]]]:
        """This model's columns of ``rows``, with nothing that a tree would misread; which can be read; what was done.

        A row cannot be read where a history is missing that no row of the fit lacked: the trees have never
        learnt what that means.
        """
        rows = self.own(rows)
        forbidden, fillable, usual = self._gaps
        missing = np.isnan(rows)
        lacking, to_fill = missing & forbidden, missing & fillable
        reasons: list[tuple[str, ...]] = [()] * len(rows)
        for row in np.flatnonzero(to_fill.any(axis=1)):
            columns = np.flatnonzero(to_fill[row])
            reasons[row] = tuple(f"{UNKNOWN}{self.columns[c]}: taken as {usual[c]:g}, the usual" for c in columns)
        unreadable: NDArray[np.bool_] = np.asarray(lacking.any(axis=1))
        for row in np.flatnonzero(unreadable):
            name = self.columns[int(np.argmax(lacking[row]))]
            reasons[row] = (f"{NO_HISTORY}: {name} is unknown, and no job the model was fitted on lacked it",)
        filled: Floats = np.where(to_fill, usual, rows)
        return filled, np.asarray(~unreadable), reasons


def _forest_name(number: int) -> str:
    return f"forest-{number}.txt"


def _check_format(found: object) -> None:
    if found != _FORMAT:
        raise Refused("model format", found, f"this version of the program reads {_FORMAT}", _REFIT)


def _read(folder: Path, name: str, digest: str) -> str:
    text = (folder / name).read_text(encoding="utf-8")
    if _digest(text) != digest:
        raise Refused("model file", name, "it is not the file that was saved with this model", _REFIT)
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _from_json(document: Mapping[str, Any], forests: tuple[str, ...], hazard: str) -> DurationModel:
    prior, grid = document["prior"], LogGrid(**document["grid"])
    return DurationModel(
        forests=forests,
        hazard=HazardModel(hazard, HazardBins(grid, tuple(document["hazard"]["cuts"]))),
        trees=tuple(document["trees"]),
        leaves=document["leaves"],
        fitted_at=datetime.fromisoformat(document["fitted_at"]),
        leaves_since=datetime.fromisoformat(document["leaves_since"]),
        jobs=document["jobs"],
        columns=tuple(document["columns"]),
        fingerprint=document["fingerprint"],
        never_missing=tuple(document["never_missing"]),
        usual=document["usual"],
        prior=DurationDistribution(np.array(prior["log_edges"]), np.array(prior["cdf"])),
        decay_days=document["decay_days"],
        grid=grid,
        calibration=CalibrationSettings(**document["calibration"]),
        blend=_blend(document["blend"]),
        questions=tuple(Question.from_json(question) for question in document["questions"]),
        settings=document["settings"],
    )


def _blend(document: Mapping[str, Any]) -> BlendSettings:
    rows = {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
    return BlendSettings(**{**document, **rows})
