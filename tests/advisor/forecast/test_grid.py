"""The grid of ln seconds: cells, interpolation, and the tail beyond what is known."""

import numpy as np
import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.errors import Refused
from advisor.forecast.grid import LogGrid


def test_cells_hold_their_durations_and_the_outermost_hold_the_rest():
    grid = LogGrid(step=0.5, cells=10, tail=1.0)
    logs = np.array([-3.0, 0.0, 0.49, 0.5, 4.99, 5.0, 99.0])
    assert grid.cells_of(logs).tolist() == [grid.cell_of(float(log)) for log in logs] == [0, 0, 0, 1, 9, 9, 9]
    assert grid.log_edges.tolist() == [0.5 * i for i in range(13)]


def test_what_survives_the_last_thing_known_ends_evenly_over_the_tail():
    grid = LogGrid(step=0.5, cells=6, tail=1.0)
    survival = np.array([[1.0, 0.6, 0.4, 0.4, 0.4, 0.4], [1.0] * 6])
    cdf, none_ended = grid.survivors_spread(survival, last=np.array([2, 0]))
    assert cdf == pytest.approx([0.0, 0.0, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0, 1.0])
    assert none_ended == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert DurationDistribution(grid.log_edges, cdf).survival(np.exp(2.0)) == pytest.approx(0.2)


def test_even_the_last_cell_has_a_tail():
    grid = LogGrid()
    (cdf,) = grid.survivors_spread(np.ones((1, grid.cells)), last=np.array([grid.cells - 1]))
    assert cdf[grid.cells] == 0.0
    assert cdf[-1] == 1.0
    assert (np.diff(cdf) >= 0).all()


def test_rows_are_read_each_at_its_own_place():
    grid = LogGrid(step=1.0, cells=2, tail=1.0)
    cdfs = np.array([[0.0, 0.5, 1.0, 1.0], [0.0, 0.2, 0.4, 1.0]])
    assert grid.at(cdfs, np.array([0.5, 2.5])) == pytest.approx([0.25, 0.7])
    assert grid.at(cdfs, np.array([-1.0, 9.0])) == pytest.approx([0.0, 1.0])


def test_what_survives_all_cells_ends_over_the_tail_and_rounding_never_exceeds_one():
    grid = LogGrid(step=0.5, cells=3, tail=1.0)
    cdfs = grid.with_tail(np.array([[0.1, 0.2, 0.6], [0.5, 1.0, 1.0 + 1e-15]]))
    assert cdfs[0] == pytest.approx([0.0, 0.1, 0.2, 0.6, 0.8, 1.0])
    assert cdfs[1].tolist() == [0.0, 0.5, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("broken", [{"step": 0.0}, {"cells": 1}, {"tail": -1.0}])
def test_a_grid_without_room_is_refused(broken):
    with pytest.raises(Refused, match="grid"):
        LogGrid(**broken)
