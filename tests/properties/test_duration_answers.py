"""Whatever is asked, of whatever history, the answer is a positive distribution with ordered quantiles."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.jobs import Job
from advisor.forecast.duration import DurationPredictor
from tests.builders import a_history
from training.duration import DurationSettings, fit_durations

HISTORY = a_history(500, seed=21)
NOW = HISTORY[-1].submit


@pytest.fixture(scope="module")
def predictors():
    model = fit_durations(HISTORY, HISTORY[350].submit, DurationSettings(trees=3, leaves=63, least_jobs=50))
    made = [DurationPredictor(model), DurationPredictor()]
    for predictor in made:
        predictor.replay(HISTORY, NOW)
    return [*made, DurationPredictor(model), DurationPredictor()]


asked = st.builds(
    Job,
    id=st.sampled_from(["x", "job-1", "job-498", "job-499"]),
    submit=st.just(NOW),
    gpus=st.floats(1e-3, 1e9),
    user=st.one_of(st.none(), st.sampled_from(["user-1", "user-5"]), st.text()),
    namespace=st.one_of(st.none(), st.text()),
    nodes=st.one_of(st.none(), st.integers(0, 10_000)),
    cpus=st.one_of(st.none(), st.floats(0.0, 1e6)),
    calendar_known=st.booleans(),
)
ages = st.one_of(st.just(0.0), st.floats(0.0, 1e12))


@given(st.data())
def test_quantiles_are_ordered_positive_and_finite_for_any_question(predictors, data):
    """Field report A17: separate quantile models cross and go below zero, one distribution cannot."""
    predictor = data.draw(st.sampled_from(predictors))
    jobs = data.draw(st.lists(asked, min_size=1, max_size=4))
    elapsed = data.draw(st.one_of(st.none(), st.lists(ages, min_size=len(jobs), max_size=len(jobs))))
    now = NOW + timedelta(seconds=data.draw(st.floats(0.0, 1e8)))
    for answer in predictor.forecast(jobs, now, elapsed):
        law = answer.distribution
        quantiles = [law.quantile(level) for level in (0.01, 0.5, 0.9, 0.95, 0.999)]
        assert np.isfinite(quantiles).all()
        assert quantiles[0] > 0
        assert quantiles == sorted(quantiles)
        assert np.isfinite([law.mean, law.typical]).all()
        assert answer.key_count >= 0
        assert (answer.model_version is None) == (answer.served == "median_of_5")
        assert answer.served == "model" or answer.reasons or answer.key.endswith("+gpus")
