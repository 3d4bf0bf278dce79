"""Fitting hazards: bins that follow the durations, what running jobs tell, and known hazards found again."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.errors import Refused
from advisor.features.duration import DURATION_SCHEMA
from advisor.features.latest import LATEST
from advisor.forecast.grid import LogGrid
from tests.builders import NOON, a_job
from training.duration_table import DurationTable, duration_table
from training.hazards import HazardSettings, fit_hazard, hazard_bins

GRID = LogGrid()
SETTINGS = HazardSettings()
SMALL = HazardSettings(rounds=20, least_in_leaf=20)
DAY = 86400.0


def edges_of(bins):
    return GRID.log_edges[list(bins.cuts)]


def a_table(seconds, *, running=(), seed=1, seen_for=DAY):
    """Jobs of those ``seconds`` that ended long ago, and others still ``running`` at those ages at ``seen_for``."""
    count = len(seconds) + len(running)
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0.0, 10.0, size=count))
    start, gone = submit.copy(), np.full(count, np.nan)
    gone[: len(seconds)] = seen_for
    start[len(seconds) :] = seen_for - np.array(running, dtype=float)
    return DurationTable(
        rows=rng.normal(5.0, 1.0, size=(count, len(DURATION_SCHEMA))),
        latest=np.full((count, LATEST), np.nan, dtype=np.float32),
        submit=submit,
        start=start,
        gone=gone,
        seconds=np.concatenate([seconds, np.full(len(running), np.nan)]),
        censored=np.zeros(count, dtype=bool),
    )


def fitted(table, now=DAY, settings=SMALL):
    return fit_hazard(table, now, GRID, settings, 1, 1)


@pytest.fixture(scope="module")
def lengths():
    return np.random.default_rng(2).exponential(2000.0, size=400) + 1.0


@pytest.mark.parametrize("median", [0.5, 30.0, 3000.0, 1e6, 1e9])
@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0])
def test_bins_cover_the_grid_in_order_none_too_narrow_and_none_too_wide(median, scale):
    logs = np.random.default_rng(3).normal(np.log(median), scale, size=500)
    edges = edges_of(hazard_bins(logs, GRID, SETTINGS))
    assert (edges[0], edges[-1]) == (0.0, pytest.approx(GRID.cells * GRID.step))
    wide = np.diff(edges)
    assert (wide > 0).all()
    # From the first edge on; edges are moved to those of the grid, half a step at most.
    assert edges[1] == pytest.approx(np.log(SETTINGS.first_seconds), abs=GRID.step / 2)
    assert wide[1:].max() <= np.log(SETTINGS.widest) + GRID.step
    assert wide[1:-1].min() >= GRID.step - 1e-9


def test_edges_are_quantiles_of_what_ended():
    logs = np.linspace(np.log(60.0), np.log(6000.0), 1001)
    bins = hazard_bins(logs, GRID, replace(SETTINGS, quantiles=3, widest=1e9))
    assert edges_of(bins)[2:-1] == pytest.approx(np.quantile(logs, [0.25, 0.5, 0.75]), abs=GRID.step / 2)
    assert len(bins) == 5


def test_equal_durations_make_one_edge_of_their_own():
    bins = hazard_bins(np.full(500, np.log(300.0)), GRID, replace(SETTINGS, widest=1e9))
    assert edges_of(bins)[1:-1] == pytest.approx(np.log([5.0, 300.0]), abs=GRID.step / 2)


def test_an_exponential_hazard_is_found():
    """One owner whose jobs end at a constant rate: later ones are answered with that distribution."""
    mean, rng = 1500.0, np.random.default_rng(4)
    jobs = [
        a_job(f"job-{n}", submit=NOON + timedelta(minutes=n), seconds=float(rng.exponential(mean)) + 1.0)
        for n in range(1600)
    ]
    table = duration_table(jobs, jobs[-1].submit)
    model = fit_hazard(table, table.submit[1300], GRID, SETTINGS, 1, 1)
    cdfs = model.cdfs(table.rows[1300:], table.latest[1300:])
    truth = -np.expm1(-np.exp(GRID.log_edges) / mean)
    assert cdfs.mean(axis=0) == pytest.approx(truth, abs=0.04)
    assert np.abs(cdfs - truth).max(axis=1).mean() < 0.12


def test_two_durations_that_alternate_at_random_are_found():
    """Two in three jobs take a minute, the others two hours, and nothing lies between."""
    rng = np.random.default_rng(5)
    jobs = [
        a_job(f"job-{n}", submit=NOON + timedelta(minutes=10 * n), seconds=float(rng.choice([60.0, 60.0, 7200.0])))
        for n in range(1200)
    ]
    table = duration_table(jobs, jobs[-1].submit)
    model = fit_hazard(table, table.submit[1000], GRID, SETTINGS, 1, 1)
    cdf = model.cdfs(table.rows[1000:], table.latest[1000:]).mean(axis=0)
    early, minute, between, hours = np.interp(np.log([30.0, 150.0, 5000.0, 16_000.0]), GRID.log_edges, cdf)
    assert early < 0.05
    assert (minute, between) == (pytest.approx(2 / 3, abs=0.08), pytest.approx(2 / 3, abs=0.08))
    assert between - minute < 0.02
    assert hours > 0.95


def test_a_running_job_tells_of_the_bins_it_has_survived_whole_and_of_no_other(lengths):
    bins = hazard_bins(np.log(lengths), GRID, SMALL)
    low, high = np.exp(edges_of(bins)[4:6])
    early, late, later = (
        fitted(a_table(lengths, running=[age] * 40)).text for age in (low * 1.01, high * 0.99, high * 1.01)
    )
    assert early == late
    assert later != late


def test_a_job_that_has_survived_no_bin_tells_nothing(lengths):
    table = a_table(lengths, running=[3.0])
    first = np.arange(lengths.size)
    without = DurationTable(
        *(getattr(table, name)[first] for name in DurationTable.__slots__ if name not in {"place", "shown"})
    )
    assert table.submit[-1] - without.submit[-1] < 1.0
    one, other = fitted(table), fitted(without)
    rows, latest = table.rows[:50], table.latest[:50]
    assert one.cdfs(rows, latest) == pytest.approx(other.cdfs(rows, latest), abs=1e-4)


def test_jobs_seen_to_survive_lower_the_hazard(lengths):
    """Without those still running the long ones that came late would be missing."""
    rows = a_table(lengths).rows[:50], a_table(lengths).latest[:50]
    alone = fitted(a_table(lengths)).cdfs(*rows).mean(axis=0)
    beside = fitted(a_table(lengths, running=[80_000.0] * 400)).cdfs(*rows).mean(axis=0)
    at = int(np.log(20_000.0) / GRID.step)
    assert alone[at] > 0.9
    assert beside[at] < 0.7


def test_a_job_lost_sight_of_is_one_that_survived(lengths):
    running = a_table(lengths, running=[5000.0] * 40)
    ages = np.where(np.isnan(running.seconds), 5000.0, running.seconds)
    gone = np.where(np.isnan(running.gone), DAY, running.gone)
    lost = replace(running, seconds=ages, gone=gone, censored=np.isnan(running.seconds))
    assert fitted(lost) == fitted(running)


def test_what_happens_after_the_fit_does_not_matter(lengths):
    table = a_table(lengths, running=[700.0] * 40)
    later = replace(
        table,
        gone=np.where(np.isnan(table.gone), DAY + 1.0, table.gone),
        seconds=np.where(np.isnan(table.seconds), 701.0, table.seconds),
    )
    assert fitted(later) == fitted(table)


def test_only_the_newest_jobs_are_fitted_on(lengths):
    table = a_table(lengths)
    changed = replace(table, rows=np.where(np.arange(400)[:, np.newaxis] < 200, 0.0, table.rows))
    assert fitted(changed, settings=replace(SMALL, newest_jobs=200)) == fitted(
        table, settings=replace(SMALL, newest_jobs=200)
    )
    assert fitted(changed) != fitted(table)


def test_the_same_seed_gives_the_same_hazard(lengths):
    table = a_table(lengths)
    assert fitted(table) == fitted(table)
    assert fit_hazard(table, DAY, GRID, SMALL, 2, 1) != fitted(table)


@pytest.mark.parametrize("broken", [{"bagging": 7.0}, {"columns": -1.0}])
def test_settings_that_cannot_be_fitted_are_refused(lengths, broken):
    with pytest.raises(Refused, match="hazard settings"):
        fitted(a_table(lengths), settings=replace(SMALL, **broken))
