"""What must hold of slice lengths whatever the durations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.forecasts import DurationDistribution
from advisor.planning.durations import PoolDurations, surviving_boundaries
from advisor.planning.slice_length import recommend_slices
from advisor.planning.slice_objective import costs
from advisor.planning.slice_terms import FINE_GRID_MINUTES, GRID_MINUTES, LatencyTarget, SliceTerms


@st.composite
def any_durations(draw) -> DurationDistribution:
    """A distribution of any shape: 2 to 12 pieces between seconds and months, some of them empty."""
    pieces = draw(st.integers(2, 12))
    first = draw(st.floats(0.0, 8.0))
    widths = draw(st.lists(st.floats(0.02, 2.0), min_size=pieces, max_size=pieces))
    masses = np.array(draw(st.lists(st.floats(0.0, 1.0), min_size=pieces, max_size=pieces)))
    masses[-1] += 0.05
    cdf = np.concatenate([[0.0], np.cumsum(masses) / masses.sum()])
    cdf[-1] = 1.0
    return DurationDistribution(first + np.concatenate([[0.0], np.cumsum(widths)]), np.minimum(cdf, 1.0))


@st.composite
def smooth_durations(draw, narrowest: float) -> DurationDistribution:
    """One to three log-normal kinds with medians from a minute to a day, none narrower than that deviation."""
    from scipy.stats import norm  # noqa: PLC0415 - only these properties pay for the import

    count = draw(st.integers(1, 3))
    centres = [draw(st.floats(math.log(60.0), math.log(86_400.0))) for _ in range(count)]
    spreads = [draw(st.floats(narrowest, 2.0)) for _ in range(count)]
    shares = [draw(st.floats(0.1, 1.0)) for _ in range(count)]
    low = min(c - 4 * s for c, s in zip(centres, spreads, strict=True))
    high = max(c + 4 * s for c, s in zip(centres, spreads, strict=True))
    edges = np.linspace(low, high, 200)
    cdf = sum(w * norm.cdf((edges - c) / s) for w, c, s in zip(shares, centres, spreads, strict=True))
    cdf = (cdf - cdf[0]) / (cdf[-1] - cdf[0])
    return DurationDistribution(edges, cdf)


shares = st.floats(0.0, 1.0)


@st.composite
def any_terms(draw) -> SliceTerms:
    return SliceTerms(
        switch_minutes=draw(st.floats(0.0, 20.0)),
        checkpoint_minutes=draw(st.floats(0.0, 2.0)),
        switch_share=draw(st.none() | shares),
        reclaim_share=draw(st.none() | shares),
        grace_minutes=draw(st.floats(0.0, 5.0)),
        slices=draw(st.integers(1, 64)),
        load=draw(st.none() | st.floats(0.05, 1.0)),
        urgent_per_minute=draw(st.just(0.0) | st.floats(0.0, 2.0)),
        latency=draw(st.none() | st.builds(LatencyTarget, st.floats(1.0, 60.0), st.floats(0.01, 0.3))),
        start_latency_minutes=draw(st.floats(0.0, 20.0)),
        max_classes=1,
    )


def length(durations: DurationDistribution, terms: SliceTerms) -> float:
    found = recommend_slices("pool", PoolDurations.one(durations), terms).classes[0].if_sliced_minutes
    assert found is not None
    return found


@given(any_durations(), any_terms(), st.floats(1.0, 5.0))
def test_a_dearer_switch_never_shortens_the_length(durations, terms, factor):
    dearer = replace(terms, switch_minutes=terms.switch_minutes * factor + 0.1 * (factor - 1.0))
    assert length(durations, dearer) >= length(durations, terms)


@given(any_durations(), any_terms(), st.floats(1.0, 60.0), st.floats(0.2, 1.0))
def test_a_tighter_promise_to_urgent_work_never_lengthens_it(durations, terms, minutes, factor):
    loose = replace(terms, latency=LatencyTarget(minutes, 0.1))
    sooner = replace(terms, latency=LatencyTarget(minutes * factor, 0.1))
    surer = replace(terms, latency=LatencyTarget(minutes, 0.1 * factor))
    assert length(durations, sooner) <= length(durations, loose)
    assert length(durations, surer) <= length(durations, loose)


@given(any_durations(), any_terms())
def test_dearer_urgent_work_never_lengthens_it_in_a_pool_that_bears_every_length(durations, terms):
    calm = replace(terms, load=None, urgent_per_minute=0.1)
    assert length(durations, replace(calm, urgent_per_minute=1.0)) <= length(durations, calm)


@given(any_durations(), st.floats(0.1, 10.0), st.floats(0.1, 20.0), st.floats(2.0, 200.0), shares, shares)
def test_cost_does_not_depend_on_the_unit_of_time(durations, unit, switch, minutes, switching, reclaimed):
    terms = SliceTerms(switch_minutes=switch, switch_share=switching, reclaim_share=reclaimed, grace_minutes=1.0)
    stretched = DurationDistribution(durations.log_edges + math.log(unit), durations.cdf)
    other = replace(terms, switch_minutes=switch * unit, grace_minutes=unit)
    here, there = costs(durations, (minutes,), terms)[0], costs(stretched, (minutes * unit,), other)[0]
    assert math.isclose(here, there, rel_tol=1e-6, abs_tol=1e-6)


@given(any_durations(), st.floats(0.5, 100.0), st.floats(1.0, 3.0), st.floats(0.0, 10.0))
def test_a_longer_slice_never_meets_more_boundaries(durations, minutes, factor, grace):
    short, long = surviving_boundaries(durations, np.array([minutes, minutes * factor]), grace)
    assert long <= short + 1e-9


fine_terms = st.builds(
    SliceTerms,
    switch_minutes=st.floats(0.3, 10.0),
    switch_share=st.floats(0.05, 1.0),
    reclaim_share=st.floats(0.0, 0.9),
)


def loss_against_every_length(durations, grid, terms) -> tuple[float, float]:
    """What the grid loses against 300 lengths between its ends, and the best of those."""
    fine = tuple(np.exp(np.linspace(math.log(grid[0]), math.log(grid[-1]), 300)))
    found = costs(durations, fine, terms)
    best = int(np.argmin(found))
    return min(costs(durations, grid, terms)) / found[best] - 1.0, fine[best]


@given(smooth_durations(0.8), fine_terms)
def test_the_grid_of_round_lengths_loses_little_except_between_five_and_ten(durations, terms):
    loss, best = loss_against_every_length(durations, GRID_MINUTES, terms)
    assert loss <= (0.05 if best >= 10.0 else 0.15)


@given(smooth_durations(0.5), fine_terms)
def test_the_fine_grid_is_within_three_per_cent_of_every_length(durations, terms):
    assert loss_against_every_length(durations, FINE_GRID_MINUTES, terms)[0] <= 0.03


@given(st.lists(any_durations(), min_size=0, max_size=6), any_terms(), st.integers(1, 3), st.none() | st.floats(1, 300))
def test_every_plan_is_whole_finite_and_repeatable(parts, terms, classes, current):
    durations = PoolDurations(tuple(parts), (1.0,) * len(parts), None)
    terms = replace(terms, max_classes=classes)
    plan = recommend_slices("pool", durations, terms, current)
    assert plan == recommend_slices("pool", durations, terms, current)
    assert 1 <= len(plan.classes) <= classes
    assert plan.classes[-1].longest_minutes is None
    bounds = [found.longest_minutes for found in plan.classes[:-1]]
    assert bounds == sorted(bounds)
    assert math.isclose(sum(found.share_of_jobs for found in plan.classes), 1.0)
    for found in plan.classes:
        assert found.if_sliced_minutes > 0
        assert found.minutes in {None, found.if_sliced_minutes}
        assert found.reasons
        numbers = (found.cost, found.mean_minutes, found.closed_form_minutes, *(point.cost for point in found.curve))
        assert all(math.isfinite(number) and number >= 0 for number in numbers)
