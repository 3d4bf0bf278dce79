"""The GPUs that running jobs give back: against hand-computed values, a brute force and a simulation."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain import releases
from advisor.domain.releases import ReleaseLaw
from advisor.errors import Refused


def test_two_jobs_by_hand():
    """2 GPUs end with 1/2, 1 GPU with 1/4: 0, 1, 2 or 3 GPUs with 3/8, 1/8, 3/8, 1/8."""
    law = ReleaseLaw.of(np.array([2.0, 1.0]), np.array([0.5, 0.25]))

    assert law.gpus.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert law.probabilities == pytest.approx([0.375, 0.125, 0.375, 0.125])
    assert law.mean == pytest.approx(1.25)
    assert (law.quantile(0.375), law.quantile(0.4), law.quantile(1.0)) == (0.0, 1.0, 3.0)
    assert law.at_least(2.0) == pytest.approx(0.5)
    assert law.error == 0.0


def test_nothing_runs_so_nothing_is_released():
    law = ReleaseLaw.of(np.zeros(0), np.zeros(0))

    assert (law.quantile(0.99), law.at_least(0.0), law.at_least(1.0)) == (0.0, 1.0, 0.0)


def test_certain_ends_are_released_for_sure():
    law = ReleaseLaw.of(np.array([8.0, 4.0, 1.0]), np.array([1.0, 0.0, 0.5]))

    assert law.gpus.tolist() == [8.0, 9.0]


jobs = st.lists(
    st.tuples(st.sampled_from([0.25, 0.5, 1.0, 2.0, 8.0]), st.floats(0.0, 1.0, allow_subnormal=False)), max_size=9
)


@given(jobs)
def test_law_equals_the_sum_over_every_combination_of_ends(found):
    sizes, chances = np.array([g for g, _ in found]), np.array([p for _, p in found])
    law = ReleaseLaw.of(sizes, chances)

    outcomes = {}
    for ended in product((0, 1), repeat=len(found)):
        chance = float(np.prod([p if e else 1 - p for e, (_, p) in zip(ended, found, strict=True)]))
        total = float(sum(e * g for e, (g, _) in zip(ended, found, strict=True)))
        outcomes[total] = outcomes.get(total, 0.0) + chance

    for total in {0.0, 0.25, 1.0, 4.0, 9.0} | set(outcomes):
        assert law.at_least(total) == pytest.approx(sum(p for g, p in outcomes.items() if g >= total), abs=1e-9)
    assert law.mean == pytest.approx(float(sizes @ chances), abs=1e-9)


def test_law_agrees_with_a_simulation_of_running_jobs():
    rng = np.random.default_rng(4)
    sizes, chances = rng.choice([1.0, 2.0, 8.0], size=60), rng.uniform(0, 1, 60)
    drawn = (rng.uniform(size=(40_000, 60)) < chances) @ sizes
    law = ReleaseLaw.of(sizes, chances)

    for total in np.quantile(drawn, [0.05, 0.5, 0.95]):
        assert law.at_least(total) == pytest.approx((drawn >= total).mean(), abs=0.01)


def test_approximation_of_very_many_jobs_stays_within_the_error_it_states(monkeypatch):
    rng = np.random.default_rng(5)
    sizes, chances = rng.choice([1.0, 2.0, 8.0], size=800), rng.uniform(0, 0.2, 800)
    exact = ReleaseLaw.of(sizes, chances)
    monkeypatch.setattr(releases, "_MOST_WORK", 1)
    near = ReleaseLaw.of(sizes, chances)

    off = max(abs(exact.at_least(g) - near.at_least(g)) for g in np.arange(0.0, 400.0))
    assert off < near.error < 0.2
    assert near.quantile(0.5) == pytest.approx(exact.quantile(0.5), abs=6.0)


@pytest.mark.parametrize(
    "sizes, chances, said",
    [([1.0], [], "as many probabilities"), ([0.0], [0.5], "more than 0 GPUs"), ([1.0], [1.5], r"\[0, 1\]")],
)
def test_what_is_no_running_job_is_refused(sizes, chances, said):
    with pytest.raises(Refused, match=said):
        ReleaseLaw.of(np.array(sizes), np.array(chances))
