import pytest

from advisor.cluster.fields import (
    BUDGETS,
    CONSOLIDATE_AFTER,
    CONSOLIDATION_POLICY,
    GPU_LIMIT,
    REPLICAS,
    WEIGHT,
    consolidate_after_seconds,
    field_of,
    shown_consolidate_after,
)
from advisor.cluster.port import PoolPatch, SliceSetting
from advisor.domain.nodepools import Budget
from advisor.errors import Refused
from tests.builders import a_node_pool


def a_patch(fields):
    return PoolPatch(pool="default", fields=fields)


def test_an_empty_patch_is_refused():
    with pytest.raises(Refused, match="limits among them"):
        a_patch({})


@pytest.mark.parametrize("field", ["spec.template.metadata.labels", "spec.template.spec.expireAfter", "spec.template"])
def test_what_would_replace_nodes_cannot_be_named(field):
    with pytest.raises(Refused, match="replace every node"):
        a_patch({field: "x"})


@pytest.mark.parametrize("field", ["metadata.labels", 'spec.limits["cpu"]', "status.nodes", ""])
def test_other_fields_are_refused_too(field):
    with pytest.raises(Refused, match="may be written"):
        a_patch({field: "x"})


@pytest.mark.parametrize(
    "field, value",
    [
        (CONSOLIDATE_AFTER, "1.5h"),
        (CONSOLIDATE_AFTER, "90"),
        (CONSOLIDATE_AFTER, "never"),
        (CONSOLIDATE_AFTER, "1d"),
        (CONSOLIDATE_AFTER, ""),
        (CONSOLIDATE_AFTER, "5m\n"),
        (CONSOLIDATE_AFTER, 180),
        (CONSOLIDATION_POLICY, "WhenUnderutilized"),
        (GPU_LIMIT, 32),
        (GPU_LIMIT, "7.5"),
        (GPU_LIMIT, "many"),
        (WEIGHT, 0),
        (WEIGHT, 101),
        (WEIGHT, True),
        (WEIGHT, "5"),
        (REPLICAS, -1),
        (BUDGETS, "10%"),
        (BUDGETS, (Budget("110%"),)),
        (BUDGETS, (Budget("-1"),)),
        (BUDGETS, (Budget("1", schedule="0 0 * * *"),)),
        (BUDGETS, (Budget("1", duration="8h"),)),
        (BUDGETS, (Budget("1", schedule="0 0 * * *", duration="1d"),)),
        (BUDGETS, (Budget("1", schedule="whenever", duration="1h"),)),
        (BUDGETS, (Budget("1", reasons=("Bored",)),)),
        (BUDGETS, (Budget("1"),) * 51),
    ],
)
def test_a_value_of_the_wrong_shape_is_refused(field, value):
    with pytest.raises(Refused, match=field.split("[", maxsplit=1)[0]):
        a_patch({field: value})


@pytest.mark.parametrize(
    "field, value",
    [
        (CONSOLIDATE_AFTER, "Never"),
        (CONSOLIDATE_AFTER, "1h30m"),
        (CONSOLIDATION_POLICY, "Balanced"),
        (GPU_LIMIT, "32000m"),
        (WEIGHT, 100),
        (REPLICAS, 0),
        (BUDGETS, ()),
        (BUDGETS, (Budget("100%", reasons=("Empty",), schedule="@daily", duration="10h5m0s"),)),
    ],
)
def test_what_the_server_takes_is_taken(field, value):
    assert a_patch({field: value}).fields[field] == value


def test_a_patch_cannot_be_changed_afterwards():
    given = {CONSOLIDATE_AFTER: "60s"}
    patch = a_patch(given)

    given["spec.template"] = "x"

    assert dict(patch.fields) == {CONSOLIDATE_AFTER: "60s"}
    with pytest.raises(TypeError):
        patch.fields[WEIGHT] = 3


@pytest.mark.parametrize("text, seconds", [("180s", 180), ("3m", 180), ("1h30m", 5400), ("0s", 0), ("1m1m", 120)])
def test_consolidate_after_is_read_in_seconds(text, seconds):
    assert consolidate_after_seconds(text) == seconds
    assert consolidate_after_seconds(shown_consolidate_after(seconds)) == seconds


def test_never_is_for_ever():
    assert shown_consolidate_after(consolidate_after_seconds("Never")) == "Never"


def test_a_pool_is_asked_only_for_writable_fields():
    assert field_of(a_node_pool(weight=3), WEIGHT) == 3
    with pytest.raises(Refused, match="may be written"):
        field_of(a_node_pool(), "metadata.name")


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("nan"), float("inf")])
def test_a_slice_length_is_positive(minutes):
    with pytest.raises(Refused, match="slice length"):
        SliceSetting(pool="default", minutes=minutes)
