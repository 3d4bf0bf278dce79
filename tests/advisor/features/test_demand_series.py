from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.errors import Refused
from advisor.features.demand import (
    JOB_ENDS,
    JOB_STARTS,
    PENDING_JOBS,
    RUNNING_SMALL_GPUS,
    SeriesGrid,
    series_by_pool,
    series_from_jobs,
)
from tests.builders import NOON, a_demand_series, a_job


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


GRID = SeriesGrid(start=NOON, end=NOON + minutes(20), step_minutes=5)
LATER = NOON + minutes(60)


def test_job_is_pending_from_submission_and_running_from_start_until_end():
    job = a_job(submit=NOON, start=NOON + minutes(5), seconds=600, gpus=8)

    series = series_from_jobs([job], "default", GRID, LATER)

    assert series.pending.tolist() == [8, 0, 0, 0, 0]
    assert series.running.tolist() == [0, 8, 8, 0, 0]
    assert series.demand.tolist() == [8, 8, 8, 0, 0]
    assert series.state[PENDING_JOBS].tolist() == [1, 0, 0, 0, 0]


def test_what_had_not_happened_by_now_is_not_in_the_series():
    """The series as of a time is the same whether or not later ends are already known."""
    ended = a_job(submit=NOON, seconds=600, gpus=4)
    running = a_job(submit=NOON, seconds=None, gpus=4)
    later = a_job("later", submit=NOON + minutes(9), gpus=4)
    now = NOON + minutes(6)

    with_future = series_from_jobs([ended, later], "default", GRID, now)
    without = series_from_jobs([running], "default", GRID, now)

    assert len(with_future) == 2
    assert with_future.running.tolist() == without.running.tolist() == [4, 4]
    assert with_future.state[JOB_ENDS].tolist() == [0, 0]


def test_job_cancelled_while_it_waited_stops_waiting():
    job = a_job(submit=NOON, start=None, end=NOON + minutes(10), outcome=Outcome.CANCELLED, gpus=2)

    series = series_from_jobs([job], "default", GRID, LATER)

    assert series.pending.tolist() == [2, 2, 0, 0, 0]
    assert series.running.sum() == 0


def test_lost_job_counts_until_it_was_last_seen_and_a_running_one_to_the_end():
    lost = a_job("lost", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + minutes(10))
    alive = a_job("alive", seconds=None, last_seen=NOON + minutes(10))

    assert series_from_jobs([lost], "default", GRID, LATER).running.tolist() == [1, 1, 0, 0, 0]
    assert series_from_jobs([alive], "default", GRID, LATER).running.tolist() == [1, 1, 1, 1, 1]


def test_shares_of_a_gpu_add_up_to_physical_gpus_without_dust():
    jobs = [a_job(f"share-{i}", gpus=0.1, seconds=600) for i in range(10)]

    series = series_from_jobs(jobs, "default", GRID, LATER)

    assert series.running.tolist() == [1, 1, 0, 0, 0]


def test_jobs_before_the_grid_are_there_from_its_beginning():
    job = a_job(submit=NOON - minutes(600), seconds=36_600, gpus=8)

    series = series_from_jobs([job], "default", GRID, LATER)

    assert series.running.tolist() == [8, 8, 0, 0, 0]
    assert series.state[JOB_STARTS].tolist() == [0, 0, 0, 0, 0]
    assert series.state[JOB_ENDS].tolist() == [0, 0, 1, 0, 0]


def test_small_jobs_are_those_below_a_node():
    jobs = [a_job("small", gpus=4), a_job("whole", gpus=8)]

    series = series_from_jobs(jobs, "default", GRID, LATER)

    assert series.running[0] == 12
    assert series.state[RUNNING_SMALL_GPUS][0] == 4


def test_pending_is_unknown_where_every_start_was_assumed():
    series = series_from_jobs([a_job(start_assumed=True)], "default", GRID, LATER)

    assert not series.pending_known
    assert series.demand.tolist() == series.running.tolist()
    assert "nothing is seen waiting" in series.notes[0]


def test_relative_times_switch_the_calendar_off():
    assert not series_from_jobs([a_job(calendar_known=False)], "default", GRID, LATER).calendar_known


def test_pool_without_jobs_wanted_nothing():
    series = series_from_jobs([], "default", GRID, LATER)

    assert series.demand.tolist() == [0, 0, 0, 0, 0]
    assert series.pending_known


def test_every_pool_has_its_own_series():
    jobs = [a_job("a", pool="west", gpus=2), a_job("b", gpu_kind="H100", gpus=3), a_job("c", gpus=1)]

    by_pool = series_by_pool(jobs, GRID, LATER)

    assert {name: series.running[0] for name, series in by_pool.items()} == {"H100": 3, "default": 1, "west": 2}


def test_grid_that_begins_after_now_is_empty():
    series = series_from_jobs([a_job()], "default", GRID, NOON - minutes(1))

    assert len(series) == 0
    assert series.end is None
    assert series.last_known is None


def test_until_keeps_samples_up_to_and_including_now():
    series = a_demand_series([1, 2, 3, 4])

    assert series.until(NOON + minutes(10)).running.tolist() == [1, 2, 3]
    assert series.until(NOON + minutes(14)).end == NOON + minutes(10)


def test_gap_in_one_row_is_a_gap_in_demand():
    series = a_demand_series([1, 2, np.nan], pending=np.array([0, np.nan, 0]))

    assert np.isnan(series.demand).tolist() == [False, True, True]
    assert series.last_known == 0
    assert series.known_minutes == 5


@pytest.mark.parametrize("row", [[1.0, -1.0], [1.0, np.inf], [1.0]])
def test_impossible_rows_are_refused(row):
    with pytest.raises(Refused, match="pending"):
        a_demand_series([1.0, 1.0], pending=np.array(row))


def test_horizon_that_is_no_multiple_of_the_step_is_refused():
    with pytest.raises(Refused, match="7 min"):
        a_demand_series([1.0, 2.0]).steps(7)


def test_rows_cannot_be_written_to():
    row = np.array([1.0, 2.0])
    series = a_demand_series(row)
    row[0] = 9.0

    assert series.running[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        series.running[0] = 5.0
