"""The baseline's share in an answer falls as history grows, and what comes out is a distribution."""

import numpy as np
import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.forecast.baselines import PRIOR
from advisor.forecast.grid import LogGrid
from advisor.forecast.shrinkage import Shrinkage

EDGES = LogGrid().log_edges
MODEL = np.interp(EDGES, np.log([50.0, 200.0]), [0.0, 1.0])
FLOOR = DurationDistribution.point(5000.0, 0.5)


@pytest.mark.parametrize("ends,share", [(0, 0.3), (100, 0.15), (900, 0.03)])
def test_the_share_halves_at_a_hundred_ends(ends, share):
    mixed = Shrinkage().mixed(MODEL, EDGES, FLOOR, ends)
    law = DurationDistribution(EDGES, mixed)
    assert law.probability_by(1000.0) == pytest.approx(1.0 - share)
    assert law.probability_by(10_000.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "floor", [PRIOR, DurationDistribution.point(0.01, 0.5), DurationDistribution.point(1e12, 0.5), FLOOR]
)
def test_a_floor_beyond_the_grid_is_counted_at_its_edges(floor):
    law = DurationDistribution(EDGES, Shrinkage(most=0.5).mixed(MODEL, EDGES, floor, 0))
    assert law.cdf[0] == 0.0
    assert law.cdf[-1] == 1.0
    assert law.quantile(0.001) >= 1.0


def test_no_share_leaves_the_model_alone():
    assert np.array_equal(Shrinkage(most=0.0).mixed(MODEL, EDGES, FLOOR, 0), MODEL)
