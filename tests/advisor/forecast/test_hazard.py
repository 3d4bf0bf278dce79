"""Hazards by bin: what a job's rows show, and that what is made of them is a distribution."""

import math

import lightgbm
import numpy as np
import pytest

from advisor.features.duration import DURATION_SCHEMA
from advisor.features.latest import LATEST
from advisor.forecast.grid import LogGrid
from advisor.forecast.hazard import HAZARD_COLUMNS, HazardBins, HazardModel

GRID = LogGrid(step=0.5, cells=30, tail=1.0)
BINS = HazardBins(GRID, (0, 4, 6, 7, 15, 30))
SAME_BEGINS, OWNER_BEGINS = 20, 40


def submissions(count, seed=1, known=0.6):
    """Latest submissions of ``count`` jobs at random: ended, running and absent."""
    rng = np.random.default_rng(seed)
    logs = rng.uniform(0.0, 16.0, size=(count, LATEST))
    kind = rng.random((count, LATEST))
    return np.where(kind < known, logs, np.where(kind < (1 + known) / 2, -1 - logs, np.nan)).astype(np.float32)


def features(count, seed=1):
    return np.random.default_rng(seed).normal(5.0, 2.0, size=(count, len(DURATION_SCHEMA)))


NOTHING = np.full((1, LATEST), np.nan, dtype=np.float32)


def column(rows, name):
    return rows[:, :, HAZARD_COLUMNS.index(name)]


@pytest.fixture(scope="module")
def model():
    """A small boosting on random rows; what it has learnt does not matter."""
    shown = BINS.rows(features(300, 3), submissions(300, 3))
    label = np.random.default_rng(3).random(shown.start.size) < 0.3
    flat = shown.rows.reshape(-1, len(HAZARD_COLUMNS))
    data = lightgbm.Dataset(flat, label, feature_name=list(HAZARD_COLUMNS), params={"verbosity": -1})
    settings = {"objective": "binary", "num_threads": 1, "verbosity": -1, "deterministic": True, "seed": 1}
    return HazardModel(lightgbm.train(settings, data, num_boost_round=20).model_to_string(), BINS)


def test_every_cell_lies_in_one_bin_and_bins_are_in_order():
    assert len(BINS) == 5
    assert BINS.of_cell.size == GRID.cells
    assert (np.diff(BINS.of_cell) >= 0).all()
    assert np.bincount(BINS.of_cell).tolist() == [4, 2, 1, 8, 15]


def test_a_row_says_which_bin_it_is_and_how_far_from_its_edge_things_lie():
    base, latest = features(3), submissions(3)
    rows, _ = BINS.rows(base, latest)
    assert rows.shape == (3, 5, len(HAZARD_COLUMNS))
    assert (column(rows, "bin") == np.arange(5)).all()
    edges = np.array([0.0, 2.0, 3.0, 3.5, 7.5])
    assert (column(rows, "edge") == edges.astype(np.float32)).all()
    for name in ("og_last", "o_km_q50"):
        value = base[:, [DURATION_SCHEMA.names.index(name)]]
        assert column(rows, f"{name}_to_edge") == pytest.approx(value - edges, abs=1e-5)
        assert column(rows, name) == pytest.approx(np.repeat(value, 5, axis=1), abs=1e-5)
    for name, place in (("og_latest", SAME_BEGINS), ("o_latest", OWNER_BEGINS)):
        first = latest[:, [place]].astype(float)
        at = np.where(first < 0, -1 - first, first)
        assert column(rows, f"{name}_to_edge") == pytest.approx(at - edges, abs=1e-5, nan_ok=True)


def test_with_nothing_known_the_start_is_one_small_hazard_everywhere():
    rows, start = BINS.rows(features(1), NOTHING)
    assert start == pytest.approx(np.full((1, 5), math.log(0.05 / 0.95)))
    assert np.isnan(column(rows, "all_hazard")).all()
    assert not column(rows, "og_at_risk").any()


def test_hazards_are_bounded_however_often_jobs_ended_there():
    """Twenty equal ends of one work leave room for a twenty-first that is not."""
    latest = np.full((1, LATEST), 2.2, dtype=np.float32)
    _, start = BINS.rows(features(1), latest)
    hazards = 1 / (1 + np.exp(-start[0]))
    assert hazards[1] == pytest.approx(0.9)
    assert hazards[0] == pytest.approx(0.002)


def test_cdfs_rise_from_zero_to_one_for_any_hazards():
    rng = np.random.default_rng(2)
    hazards = rng.choice([0.0, 1e-9, 0.3, 0.9, 1.0], size=(200, 5))
    cdfs = BINS.cdfs(hazards, submissions(200))
    assert cdfs.shape == (200, GRID.log_edges.size)
    assert (np.diff(cdfs, axis=1) >= 0).all()
    assert (cdfs[:, 0] == 0).all()
    assert (cdfs[:, -1] == 1).all()


def test_at_the_edges_of_bins_the_survival_is_that_of_the_hazards():
    hazards = np.array([[0.1, 0.5, 0.0, 0.25, 0.2]])
    cdf = BINS.cdfs(hazards, submissions(1))[0]
    left = np.cumprod(1 - hazards[0])
    assert cdf[[4, 6, 7, 15, 30]] == pytest.approx(1 - left)
    assert cdf[-2] == pytest.approx(1 - left[-1] * 0.5)


def test_within_a_bin_the_latest_durations_of_the_key_are_atoms():
    hazards = np.array([[0.0, 0.0, 0.0, 1.0, 0.0]])
    even = np.diff(BINS.cdfs(hazards, NOTHING)[0])[7:15]
    assert even == pytest.approx(np.full(8, 1 / 8))
    latest = NOTHING.copy()
    latest[0, SAME_BEGINS : SAME_BEGINS + 2] = 5.3, -1 - 4.2
    atoms = np.diff(BINS.cdfs(hazards, latest)[0])[7:15]
    # One end in cell 10 beside an even weight of two; the running one is no end.
    assert atoms == pytest.approx(np.where(np.arange(7, 15) == 10, 1.25, 0.25) / 3.0)


def test_the_newest_duration_weighs_most_and_that_of_the_owner_half():
    hazards = np.array([[0.0, 0.0, 0.0, 1.0, 0.0]])
    latest = NOTHING.copy()
    latest[0, SAME_BEGINS], latest[0, SAME_BEGINS + 3], latest[0, OWNER_BEGINS] = 3.6, 4.1, 4.6
    mass = np.diff(BINS.cdfs(hazards, latest)[0])
    extra = (mass - mass[11])[[7, 8, 9]]
    assert extra / extra[0] == pytest.approx([1.0, 0.9**3, 0.5])


def test_the_answer_to_one_job_does_not_depend_on_its_company_to_the_bit(model):
    base, latest = features(1203, 5), submissions(1203, 5)
    together = model.cdfs(base, latest)
    order = np.random.default_rng(5).permutation(1203)
    assert np.array_equal(model.cdfs(base[order], latest[order]), together[order])
    for place in (0, 1, 499, 500, 777, 1202):
        assert np.array_equal(model.cdfs(base[[place]], latest[[place]])[0], together[place])
    pieces = [model.cdfs(base[:7], latest[:7]), model.cdfs(base[7:], latest[7:])]
    assert np.array_equal(np.concatenate(pieces), together)


def test_no_jobs_have_no_answers(model):
    assert model.cdfs(features(0), submissions(0)).shape == (0, GRID.log_edges.size)


def test_asking_changes_neither_rows_nor_answers(model):
    base, latest = features(20, 6), submissions(20, 6)
    kept = base.copy(), latest.copy()
    first = model.cdfs(base, latest)
    assert np.array_equal(model.cdfs(base, latest), first)
    assert np.array_equal(base, kept[0])
    assert np.array_equal(latest, kept[1], equal_nan=True)


def test_gaps_and_huge_values_give_a_distribution_all_the_same(model):
    base = features(4, 7)
    base[0], base[1], base[2] = np.nan, 1e30, -1e30
    latest = submissions(4, 7)
    latest[1], latest[2], latest[3] = np.nan, 700.0, -701.0
    cdfs = model.cdfs(base, latest)
    assert np.isfinite(cdfs).all()
    assert (np.diff(cdfs, axis=1) >= 0).all()
    assert (cdfs[:, -1] == 1).all()
