import numpy as np
import pytest

from advisor.errors import Defect
from advisor.forecast.demand_law import ChangeClasses, corrected_levels


def test_no_change_is_a_class_of_its_own():
    changes = np.repeat([-1.0, 0.0, 0.125, 1.0], 100)

    classes = ChangeClasses.from_changes(changes)

    no_change = int(classes.classify(np.array([0.0]))[0])
    assert (classes.atoms[no_change] == 0).all()
    assert len(set(classes.classify(np.array([-1.0, 0.0, 0.125, 1.0])))) == 4


def test_changes_that_are_large_and_continuous_get_edges_at_their_quantiles():
    rng = np.random.default_rng(2)
    changes = np.concatenate([np.zeros(500), rng.normal(0, 40, 3000)])

    classes = ChangeClasses.from_changes(changes)

    counts = np.bincount(classes.classify(changes))
    assert classes.edges.max() > 50
    assert counts.min() > 30


def test_few_rises_are_kept_together_and_apart_from_no_change():
    changes = np.concatenate([np.zeros(5000), [0.125] * 4, [1.0] * 20, [5.0] * 12])

    classes = ChangeClasses.from_changes(changes)

    assert classes.classify(np.array([0.0]))[0] != classes.classify(np.array([0.125]))[0]
    assert np.bincount(classes.classify(changes)).min() >= 10


def test_demand_that_never_changes_has_one_class():
    assert len(ChangeClasses.from_changes(np.zeros(1000))) == 1


def test_all_probability_on_no_change_means_no_change_at_every_level():
    classes = ChangeClasses.from_changes(np.repeat([-1.0, 0.0, 1.0], 100))
    certain = np.zeros((1, len(classes)))
    certain[0, classes.classify(np.array([0.0]))[0]] = 1.0

    assert (classes.law(certain).quantiles(np.array([0.01, 0.5, 0.99])) == 0).all()


def test_outcome_on_an_atom_has_a_bracket_and_one_between_has_none():
    classes = ChangeClasses.from_changes(np.repeat([-1.0, 0.0, 1.0], 100))
    law = classes.law(np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]]))

    lower, upper = law.transforms(np.array([0.0, 0.5]))

    assert lower == pytest.approx([0.2, 0.7])
    assert upper == pytest.approx([0.7, 0.7])


def test_levels_stay_where_outcomes_fall_as_promised():
    even = np.linspace(0, 1, 2001)[:-1]
    levels = np.array([0.1, 0.5, 0.9, 0.99])

    assert corrected_levels(levels, even, even + 0.0005) == pytest.approx(levels, abs=0.003)


def test_levels_go_only_halfway_and_a_tail_grows_no_more_than_threefold():
    levels = np.array([0.01, 0.9, 0.99])

    all_fell_below = corrected_levels(levels, np.zeros(100), np.full(100, 1e-6))
    all_came_above = corrected_levels(levels, np.full(100, 0.9999), np.ones(100))

    assert all_fell_below.tolist() == pytest.approx([0.005, 0.7, 0.97], abs=1e-4)
    assert all_came_above.tolist() == pytest.approx([0.03, 0.95, 0.995], abs=1e-4)


def test_broken_classes_are_a_defect():
    with pytest.raises(Defect, match="rising edges"):
        ChangeClasses(np.array([1.0, 1.0]), np.zeros((3, 10)))
    with pytest.raises(Defect, match="atoms"):
        ChangeClasses(np.array([0.0]), np.array([[1.0], [0.0]]))
