"""The schema: what makes two of them differ, and how a mismatch is named."""

from dataclasses import replace

import pytest

from advisor.errors import Defect, Refused
from advisor.features.duration import DURATION_SCHEMA
from advisor.features.table import Feature, FeatureSchema, KnownWhen

AGE = Feature("age", "how old", "s")
GPUS = Feature("gpus", "how many", "GPUs", KnownWhen.REQUEST)


def test_the_fingerprint_follows_every_part_of_a_declaration():
    base = FeatureSchema((AGE, GPUS))
    assert base.fingerprint == FeatureSchema((AGE, GPUS)).fingerprint
    others = [
        (GPUS, AGE),
        (AGE,),
        (replace(AGE, name="aged"), GPUS),
        (replace(AGE, unit="ln s"), GPUS),
        (replace(AGE, meaning="how young"), GPUS),
        (replace(AGE, known_when=KnownWhen.REQUEST), GPUS),
    ]
    assert len({base.fingerprint, *(FeatureSchema(other).fingerprint for other in others)}) == len(others) + 1


def test_the_first_differing_column_is_named():
    schema = FeatureSchema((AGE, GPUS))
    with pytest.raises(Refused, match=r"feature schema: 'cpus' is refused; column 1 is 'gpus'"):
        schema.require(("age", "cpus"), schema.fingerprint)


@pytest.mark.parametrize("names,first", [(("age",), "gpus"), (("age", "gpus", "hour"), "hour")])
def test_a_missing_and_a_surplus_column_are_named(names, first):
    schema = FeatureSchema((AGE, GPUS))
    with pytest.raises(Refused, match=rf"'{first}' is refused; the model has {len(names)} columns"):
        schema.require(names, schema.fingerprint)


def test_a_changed_meaning_is_refused_though_all_names_agree():
    ours, theirs = FeatureSchema((AGE, GPUS)), FeatureSchema((replace(AGE, unit="min"), GPUS))
    with pytest.raises(Refused, match="a meaning or a unit has changed"):
        ours.require(theirs.names, theirs.fingerprint)
    ours.require(ours.names, ours.fingerprint)


def test_two_features_of_one_name_are_a_defect():
    with pytest.raises(Defect, match="share a name"):
        FeatureSchema((AGE, AGE))


def test_every_duration_feature_says_what_it_means_and_in_which_unit():
    assert all(feature.meaning and feature.unit for feature in DURATION_SCHEMA.features)
    asked = {feature.name for feature in DURATION_SCHEMA.features if feature.known_when is KnownWhen.REQUEST}
    assert asked == {"hour", "gpus", "nodes", "cpus", "priority", "time_limit"}
