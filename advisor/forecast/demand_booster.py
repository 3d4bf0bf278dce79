"""Class probabilities from a gradient-boosted model, kept as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from advisor.errors import Refused

__all__ = ["ClassBooster"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClassBooster:
    """A multiclass LightGBM model: rows of features in, probabilities of ``classes`` classes out.

    ``gaps`` marks the columns that were ever unknown while it was fitted. LightGBM reads an unknown value
    in any other column as zero, so such a row is not for this model.
    """

    text: str
    classes: int
    gaps: Bools

    @cached_property
    def _booster(self) -> lgb.Booster:
        return lgb.Booster(model_str=self.text)

    def can_read(self, rows: Floats) -> Bools:
        """Which rows are known wherever they always were in fitting."""
        unreadable: Bools = np.any(np.isnan(rows) & ~self.gaps, axis=1)
        return ~unreadable

    def probabilities(self, rows: Floats) -> Floats:
        """Probability of each class for each row: shape (rows, classes), rows summing to one."""
        if not len(rows):
            return np.zeros((0, self.classes))
        # One thread: requests are many and small, and sums then never depend on the machine.
        found = np.asarray(self._booster.predict(rows, num_threads=1), dtype=np.float64)
        if self.classes == 2:
            return np.column_stack([1.0 - found, found])
        return found

    def save(self, path: Path) -> dict[str, Any]:
        """Write the trees to ``path`` and return what must be kept beside them."""
        path.write_text(self.text, encoding="utf-8")
        return {"file": path.name, "classes": self.classes, "gaps": np.flatnonzero(self.gaps).tolist()}

    @classmethod
    def load(cls, folder: Path, document: dict[str, Any], columns: int) -> ClassBooster:
        """What :meth:`save` wrote.

        Raises:
            Refused: the file cannot be read as a model.
        """
        path = folder / str(document["file"])
        gaps = np.zeros(columns, dtype=np.bool_)
        gaps[document["gaps"]] = True
        try:
            loaded = cls(path.read_text(encoding="utf-8"), int(document["classes"]), gaps)
            # A broken file must fail here, not at the first request.
            _ = loaded._booster
        except (OSError, lgb.basic.LightGBMError) as error:
            raise Refused("model", path.name, "the file is no LightGBM text model", "Fit the model again.") from error
        return loaded
