"""A promise holds what was said; shares say how many were kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.forecasts import DurationDistribution, DurationForecast
from advisor.domain.promises import KeptPromises, Promise
from advisor.errors import Defect
from tests.builders import NOON, lognormal_durations


def promised(law: DurationDistribution) -> Promise:
    forecast = DurationForecast(distribution=law, served="model", model_version="3", key="user", key_count=4)
    return Promise.of("test", "job-1", forecast, NOON, replayed=False)


@given(st.floats(1.0, 1e6), st.floats(1e-6, 3.0))
def test_what_is_shown_of_the_law_survives_its_thinning(median, sigma):
    law = lognormal_durations(median, sigma)
    promise = promised(law)
    again = promise.forecast.distribution
    for level in (0.5, 0.8, 0.9, 0.95):
        assert again.quantile(level) == pytest.approx(law.quantile(level), rel=1e-9)
    assert again.probability_by(median * 1.5) == pytest.approx(law.probability_by(median * 1.5), abs=0.02)
    assert (promise.typical_seconds, promise.mean_seconds) == (law.typical, law.mean)


def test_a_law_narrower_than_its_numbers_is_still_one():
    assert promised(DurationDistribution.point(600.0, spread=1e-14 * 8)).forecast.distribution.median == pytest.approx(
        600.0
    )


def test_shares_are_of_those_counted_and_stretches_add_up():
    kept = KeptPromises(begin=NOON, replayed=False, ended=6, overdue=2, within_p50=3, within_p90=5)
    assert (kept.counted, kept.p50_share, kept.p90_share) == (8, 3 / 8, 5 / 8)
    assert kept.joined(kept) == replace(kept, ended=12, overdue=4, within_p50=6, within_p90=10)
    none = KeptPromises(begin=NOON, replayed=False, ended=0, overdue=0, within_p50=0, within_p90=0)
    assert (none.p50_share, none.p90_share) == (None, None)


def test_promises_made_in_time_and_those_made_afterwards_are_never_one_figure():
    live = KeptPromises(begin=NOON, replayed=False, ended=6, overdue=2, within_p50=3, within_p90=5)
    with pytest.raises(Defect, match="not counted together"):
        live.joined(replace(live, replayed=True))
