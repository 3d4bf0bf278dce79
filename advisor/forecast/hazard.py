"""A hazard model of durations: of the jobs that got this far, which share ends within the next bin?

Discrete-time survival: one logistic boosting over (job, bin), whose starting point is a shrunken hazard
counted from the latest submissions of the same owner and GPU count, of the owner, and of all. Running jobs
are in those counts at their age. Within a bin the latest durations of the key are atoms, since people run
the same work again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import lightgbm
import numpy as np
from numpy.typing import NDArray

from advisor.features.duration import DURATION_SCHEMA
from advisor.features.latest import LATEST_OF_ALL, LATEST_OF_KEY, ended_and_logs
from advisor.forecast.grid import LogGrid

__all__ = ["HAZARD_COLUMNS", "HazardBins", "HazardModel", "HazardRows", "hazard_columns"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]

_NAMED = slice(0, LATEST_OF_KEY)
_SAME = slice(LATEST_OF_KEY, 2 * LATEST_OF_KEY)
_OWNER = slice(2 * LATEST_OF_KEY, 3 * LATEST_OF_KEY)
_ALL = slice(3 * LATEST_OF_KEY, 3 * LATEST_OF_KEY + LATEST_OF_ALL)
_DECAYS = ((_NAMED, 0.9), (_SAME, 0.9), (_OWNER, 0.93), (_ALL, 0.99))
"""A submission's weight falls with every later one."""
_WEIGHTS = np.concatenate([decay ** np.arange(part.stop - part.start) for part, decay in _DECAYS])
_PART_OF = np.repeat(np.arange(len(_DECAYS)), [part.stop - part.start for part, _ in _DECAYS])

_LOWEST, _HIGHEST = 0.002, 0.9
_UNIFORM = 2.0
_ATOMS = np.concatenate([share * 0.9 ** np.arange(LATEST_OF_KEY) for share in (1.0, 1.0, 0.5)])
"""What the latest durations of name, owner and GPU count, and owner weigh within their bins, beside an even spread."""

_OFFSETS = (
    "og_last",
    "og_second_last",
    "og_median_5",
    "og_km_q50",
    "ogn_last",
    "ogn_km_q50",
    "og_oldest_running",
    "og_youngest_running",
    "o_last",
    "o_km_q50",
    "o_youngest_running",
)
_OFFSET_COLUMNS = [DURATION_SCHEMA.names.index(name) for name in _OFFSETS]

_COUNTED = (
    *(
        f"{key}_{what}"
        for key in ("ogn", "og", "o", "all")
        for what in ("ended_in_bin", "at_risk", "alive_in_bin", "hazard")
    ),
    "bin",
    "edge",
    *(f"{name}_to_edge" for name in (*_OFFSETS, "og_latest", "o_latest")),
)


def hazard_columns(names: Sequence[str]) -> tuple[str, ...]:
    """What one (job, bin) row shows a model fitted on the features ``names``, in order."""
    return (*names, *_COUNTED)


HAZARD_COLUMNS = hazard_columns(DURATION_SCHEMA.names)
"""The same for a model that knows nothing of usage."""


class HazardRows(NamedTuple):
    """Rows of n jobs at all bins, (n, bins, columns), and the logit each starts from, (n, bins)."""

    rows: Singles
    start: Floats


@dataclass(frozen=True)
class HazardBins:
    """Bins of ln seconds between cells ``cuts`` of ``grid``: ascending, the first 0, the last the grid's cells."""

    grid: LogGrid
    cuts: tuple[int, ...]

    def __len__(self) -> int:
        """How many bins there are."""
        return len(self.cuts) - 1

    @cached_property
    def of_cell(self) -> NDArray[np.intp]:
        """The bin each cell of the grid lies in."""
        return np.repeat(np.arange(len(self), dtype=np.intp), np.diff(self.cuts))

    @cached_property
    def _edges(self) -> Floats:
        return self.grid.log_edges[list(self.cuts[:-1])]

    @cached_property
    def _uniform(self) -> Floats:
        """Per cell: its share of the weight that is spread evenly over its bin."""
        return _UNIFORM / np.diff(self.cuts)[self.of_cell]

    def rows(self, base: Floats, latest: Singles) -> HazardRows:
        """What the model is shown of jobs with feature rows ``base`` and ``latest`` submissions (n rows each)."""
        died, at_risk, lost = self._counts(latest)
        hazards = _shrunken(died, at_risk)
        first = base.shape[1]
        rows = np.empty((len(base), len(self), first + len(_COUNTED)), dtype=np.float32)
        rows[:, :, :first] = base[:, np.newaxis, :]
        for part, hazard in enumerate(hazards):
            # Where nothing was seen the hazard is that of the wider key, which is shown already.
            own = np.where(at_risk[:, part, :1] > 0, hazard, np.nan)
            for column in (died[:, part], at_risk[:, part], lost[:, part], own):
                rows[:, :, first] = column
                first += 1
        rows[:, :, first] = np.arange(len(self))
        rows[:, :, first + 1] = self._edges
        first_two = latest[:, [_SAME.start, _OWNER.start]]
        latest_values = np.where(first_two < 0.0, -1.0 - first_two, first_two)
        places = np.concatenate([base[:, _OFFSET_COLUMNS], latest_values], axis=1)
        rows[:, :, first + 2 :] = places[:, np.newaxis, :] - self._edges[:, np.newaxis]
        share = np.clip(hazards[0], _LOWEST, _HIGHEST)
        return HazardRows(rows, np.log(share / (1.0 - share)))

    def _counts(self, latest: Singles) -> tuple[Floats, Floats, Floats]:
        """Weighted, (n, parts, bins): ends, at risk, and alive at last; those alive count half at risk in their bin."""
        ended, alive, logs = ended_and_logs(latest)
        places = self.of_cell[self.grid.cells_of(logs)] + len(self) * _PART_OF
        shape = (len(latest), len(_DECAYS), len(self))
        died, lost = (
            _summed(places, weights * _WEIGHTS, shape[1] * shape[2]).reshape(shape) for weights in (ended, alive)
        )
        at_risk = np.add.accumulate((died + lost)[:, :, ::-1], axis=2)[:, :, ::-1] - 0.5 * lost
        return died, at_risk, lost

    def cdfs(self, hazards: Floats, latest: Singles) -> Floats:
        """The CDF at every edge of the grid, from the ``hazards`` of all bins (n, bins)."""
        survival = np.multiply.accumulate(1.0 - hazards, axis=1)
        before = np.concatenate([np.ones((len(survival), 1)), survival[:, :-1]], axis=1)
        ended, _, logs = ended_and_logs(latest[:, : _OWNER.stop])
        shape = self._uniform + _summed(self.grid.cells_of(logs), ended * _ATOMS, self.grid.cells)
        in_bin = np.add.reduceat(shape, self.cuts[:-1], axis=1)
        mass = ((before - survival) / in_bin)[:, self.of_cell] * shape
        return self.grid.with_tail(np.add.accumulate(mass, axis=1))


def _summed(places: NDArray[np.intp], weights: Floats, size: int) -> Floats:
    """Weights added up by place, each row by itself: (n, size)."""
    count = len(places)
    flat = places + size * np.arange(count, dtype=np.intp)[:, np.newaxis]
    found: Floats = np.bincount(flat.ravel(), weights=weights.ravel(), minlength=count * size).astype(np.float64)
    return found.reshape(count, size)


def _shrunken(died: Floats, at_risk: Floats) -> list[Floats]:
    """Hazards of name, owner and GPU count, owner, all: each leans on the next wider one where it has seen little."""
    of_all = (died[:, 3] + 0.025) / (at_risk[:, 3] + 0.5)
    of_owner = (died[:, 2] + 2.0 * of_all) / (at_risk[:, 2] + 2.0)
    of_same = (died[:, 1] + 1.5 * of_owner) / (at_risk[:, 1] + 1.5)
    of_named = (died[:, 0] + 1.5 * of_same) / (at_risk[:, 0] + 1.5)
    return [of_named, of_same, of_owner, of_all]


@dataclass(frozen=True)
class HazardModel:
    """A fitted hazard: a LightGBM model as ``text`` over ``bins``. It can only predict."""

    text: str
    bins: HazardBins

    @cached_property
    def _booster(self) -> lightgbm.Booster:
        return lightgbm.Booster(model_str=self.text)

    @property
    def columns(self) -> int:
        """How many columns a row has."""
        return len(HAZARD_COLUMNS)

    def raw(self, shown: Singles) -> Floats:
        """What the trees add to the logit of each row shown, (rows,)."""
        return np.asarray(self._booster.predict(shown, raw_score=True, num_threads=1))

    def cdfs(self, base: Floats, latest: Singles) -> Floats:
        """P(duration <= edge) at every edge of the grid, one row per job: (n, edges)."""
        found = [self._cdfs(base[n : n + _BATCH], latest[n : n + _BATCH]) for n in range(0, len(base), _BATCH)]
        return np.concatenate(found) if found else np.empty((0, self.bins.grid.log_edges.size))

    def _cdfs(self, base: Floats, latest: Singles) -> Floats:
        shown, start = self.bins.rows(base, latest)
        flat = shown.reshape(-1, shown.shape[2])
        raw = self.raw(flat).reshape(start.shape)
        return self.bins.cdfs(1.0 / (1.0 + np.exp(-(raw + start))), latest)


_BATCH = 500
"""Jobs predicted at a time: their rows at all bins stay within some megabytes."""
