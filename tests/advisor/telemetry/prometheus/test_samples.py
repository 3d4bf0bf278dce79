from __future__ import annotations

import numpy as np

from advisor.telemetry.prometheus.samples import Series, joined


def _series(pod: str, *times: float) -> Series:
    return Series({"pod": pod}, np.array(times), np.array(times) * 2)


def test_a_series_of_two_halves_is_one_and_others_stay_themselves():
    found = joined([_series("a", 1, 2), _series("gone", 1)], [_series("new", 3), _series("a", 3)])

    assert [(s.labels["pod"], s.times.tolist(), s.values.tolist()) for s in found] == [
        ("a", [1, 2, 3], [2, 4, 6]),
        ("gone", [1], [2]),
        ("new", [3], [6]),
    ]
