"""Hazards counted from the latest submissions, and the CDF within bins, against the same written out one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.features.duration import DURATION_SCHEMA
from advisor.forecast.grid import LogGrid
from advisor.forecast.hazard import HAZARD_COLUMNS, HazardBins

GRID = LogGrid(step=0.5, cells=20, tail=1.0)
KEYS = (("ogn", 20, 0.9), ("og", 20, 0.9), ("o", 20, 0.93), ("all", 100, 0.99))
LEAN = {"ogn": ("og", 1.5), "og": ("o", 1.5), "o": ("all", 2.0)}
ATOMS = {"ogn": 1.0, "og": 1.0, "o": 0.5}


def bin_of(cuts, x):
    cell = min(max(int(x / GRID.step), 0), GRID.cells - 1)
    return max(number for number, cut in enumerate(cuts[:-1]) if cut <= cell), cell


def oracle_counts(cuts, seen, decay):
    """Per bin: weight of ends, at risk, and of those alive at last, of pairs (kind, ln seconds), newest first.

    Whoever was alive at last within a bin was at risk through half of it.
    """
    counts = []
    for number in range(len(cuts) - 1):
        died = at_risk = lost = 0.0
        for place, (kind, x) in enumerate(seen):
            if kind == "nothing":
                continue
            weight, own = decay**place, bin_of(cuts, x)[0]
            if own > number:
                at_risk += weight
            elif own == number and kind == "ended":
                died += weight
                at_risk += weight
            elif own == number:
                lost += weight
                at_risk += weight / 2
        counts.append((died, at_risk, lost))
    return counts


def oracle_hazards(counts):
    """Of all with a weak pull to 5 %, then of each narrower key leaning on the wider one."""
    hazards = {"all": [(died + 0.025) / (at_risk + 0.5) for died, at_risk, _ in counts["all"]]}
    for key in ("o", "og", "ogn"):
        wider, pull = LEAN[key]
        hazards[key] = [
            (died + pull * wide) / (at_risk + pull)
            for (died, at_risk, _), wide in zip(counts[key], hazards[wider], strict=True)
        ]
    return hazards


def oracle_cdf(cuts, seen, hazards):
    """Cell by cell: what a bin loses is shared out by an even weight of two and the ends that lie in its cells."""
    cdf, left = [0.0], 1.0
    for number, hazard in enumerate(hazards):
        first, last = cuts[number], cuts[number + 1]
        shares = [2.0 / (last - first)] * (last - first)
        for key, share in ATOMS.items():
            for place, (kind, x) in enumerate(seen[key]):
                own, cell = bin_of(cuts, x)
                if kind == "ended" and own == number:
                    shares[cell - first] += share * 0.9**place
        for part in shares:
            cdf.append(cdf[-1] + left * hazard * part / sum(shares))
        left *= 1.0 - hazard
    while len(cdf) < GRID.log_edges.size:
        cdf.append(1.0 - left * max(0.0, 1.0 - (len(cdf) - GRID.cells) * GRID.step / GRID.tail))
    cdf[-1] = 1.0
    return cdf


@st.composite
def worlds(draw):
    cuts = (0, *sorted(draw(st.sets(st.integers(1, GRID.cells - 1), max_size=6))), GRID.cells)
    # Sixteenths lie exactly where they are said to lie, in single precision too.
    one = st.tuples(st.sampled_from(["ended", "ended", "alive", "nothing"]), st.integers(0, 200).map(lambda n: n / 16))
    seen = {key: draw(st.lists(one, max_size=min(size, 25))) for key, size, _ in KEYS}
    hazards = draw(st.lists(st.floats(0.0, 1.0), min_size=len(cuts) - 1, max_size=len(cuts) - 1))
    return cuts, {key: known[:size] for (key, size, _), known in zip(KEYS, seen.values(), strict=True)}, hazards


def as_row(seen):
    row = []
    for key, size, _ in KEYS:
        told = [x if kind == "ended" else -1.0 - x if kind == "alive" else math.nan for kind, x in seen[key]]
        row += told + [math.nan] * (size - len(told))
    return np.array([row], dtype=np.float32)


@given(worlds())
def test_counts_and_hazards_of_any_submissions_agree(world):
    cuts, seen, _ = world
    rows, start = HazardBins(GRID, cuts).rows(np.zeros((1, len(DURATION_SCHEMA))), as_row(seen))
    shown = dict(zip(HAZARD_COLUMNS, rows[0].T, strict=True))
    counts = {key: oracle_counts(cuts, seen[key], decay) for key, _, decay in KEYS}
    hazards = oracle_hazards(counts)
    for key, _, _ in KEYS:
        for place, what in enumerate(("ended_in_bin", "at_risk", "alive_in_bin")):
            assert shown[f"{key}_{what}"] == pytest.approx([one[place] for one in counts[key]], abs=1e-5), (key, what)
        # Of a key that has shown nothing no hazard of its own is told.
        known = any(kind != "nothing" for kind, _ in seen[key])
        own = hazards[key] if known else [math.nan] * len(hazards[key])
        assert shown[f"{key}_hazard"] == pytest.approx(own, abs=1e-6, nan_ok=True)
    shares = np.clip(hazards["ogn"], 0.002, 0.9)
    assert start[0] == pytest.approx(np.log(shares / (1 - shares)))


@given(worlds())
def test_the_cdf_within_bins_agrees(world):
    cuts, seen, hazards = world
    found = HazardBins(GRID, cuts).cdfs(np.array([hazards]), as_row(seen))[0]
    assert found == pytest.approx(oracle_cdf(cuts, seen, hazards), abs=1e-9)
