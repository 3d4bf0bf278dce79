"""The check that holds the JSON page against real documents would notice a difference."""

from __future__ import annotations

from tests.docs.json_shapes import differences

DESCRIBED = {"n": "count", "by": {"<name>": {"x": "number"}}, "list": [{"y": "number"}], "any": []}


def test_a_document_of_the_described_shape_passes():
    assert differences(DESCRIBED, {"n": 1, "by": {"a": {"x": 1}, "b": {"x": 2}}, "list": [{"y": 0}], "any": [1]}) == []


def test_a_missing_and_an_undescribed_field_are_both_noticed():
    real = {"n": 1, "by": {"a": {"z": 1}}, "list": [{"y": 0}, {}], "any": [], "more": 1}
    assert sorted(differences(DESCRIBED, real)) == sorted(
        [".by.a.x is missing", ".by.a.z is not described", ".list[].y is missing", ".more is not described"]
    )


def test_a_value_where_an_object_was_described_is_noticed():
    assert differences({"a": {"b": "number"}}, {"a": None}) == [".a: described as dict, is None"]
