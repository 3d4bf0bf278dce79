from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.telemetry.prometheus.answers import (
    BROKEN_PAIR,
    HISTOGRAM,
    NOT_A_NUMBER,
    OUT_OF_ORDER,
    Malformed,
    parse,
)


def body(result: object, kind: str = "matrix", **more: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more}).encode()


def one(*pairs: object, **labels: str) -> dict[str, object]:
    return {"metric": labels, "values": list(pairs)}


labels = st.dictionaries(st.sampled_from(["metric", "values", "histograms", "status", "pod", "__name__"]), st.text())
columns = st.lists(st.tuples(st.integers(0, 2**33), st.floats()), min_size=1, unique_by=lambda pair: pair[0]).map(
    sorted
)


@given(given=st.lists(st.tuples(labels, columns)))
def test_what_a_server_stores_comes_back_as_it_was(given):
    answer = parse(body([one(*([at / 8, _go(value)] for at, value in pairs), **found) for found, pairs in given]))
    series = answer.series()

    assert answer.rejections == ()
    assert [dict(found.labels) for found in series] == [found for found, _ in given]
    for found, (_, pairs) in zip(series, given, strict=True):
        np.testing.assert_array_equal(found.times, [at / 8 for at, _ in pairs])
        np.testing.assert_array_equal(found.values, [value for _, value in pairs])


def _go(value: float) -> str:
    """A float as Go's strconv writes it."""
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(value)


def test_a_value_that_is_no_number_is_left_out_and_counted_with_an_example():
    answer = parse(body([one([60, "1"], [120, "ERROR - FAILED"], [180, None], [240], [300, "3"], pod="a")]))

    (series,) = answer.series()

    assert (series.times.tolist(), series.values.tolist()) == ([60, 300], [1, 3])
    counts = {rejection.reason: rejection.count for rejection in answer.rejections}
    assert counts == {NOT_A_NUMBER: 2, BROKEN_PAIR: 1}
    assert " at 1970-01-01T00:02:00Z: ERROR - FAILED" in next(
        r.example for r in answer.rejections if r.reason == NOT_A_NUMBER
    )


def test_samples_out_of_order_are_sorted_and_a_second_of_one_moment_is_counted():
    answer = parse(body([one([120, "2"], [60, "1"], [120, "9"])]))

    (series,) = answer.series()

    assert (series.times.tolist(), series.values.tolist()) == ([60, 120], [1, 2])
    assert [(r.reason, r.count) for r in answer.rejections] == [(OUT_OF_ORDER, 1)]


def test_a_moment_that_is_no_number_is_left_out_and_counted():
    answer = parse(body([one([math.nan, "1"], [math.inf, "2"], [3, "4"])]))

    assert [series.times.tolist() for series in answer.series()] == [[3]]
    assert [(r.reason, r.count) for r in answer.rejections] == [(BROKEN_PAIR, 2)]


def test_native_histograms_are_counted_and_the_plain_samples_beside_them_kept():
    mixed = {"metric": {"a": "b"}, "values": [[60, "1"]], "histograms": [[120, {"count": "3"}], [180, {"count": "4"}]]}

    answer = parse(body([mixed, {"metric": {}, "histogram": [60, {"count": "1"}]}]))

    assert [series.values.tolist() for series in answer.series()] == [[1]]
    assert [(r.reason, r.count) for r in answer.rejections] == [(HISTOGRAM, 3)]


def test_vectors_and_scalars_are_series_of_one_sample():
    (vector,) = parse(body([{"metric": {"a": "b"}, "value": [1.5, "+Inf"]}], "vector")).series()
    (scalar,) = parse(body([1.5, "7"], "scalar")).series()

    assert (vector.labels, vector.times.tolist(), vector.values.tolist()) == ({"a": "b"}, [1.5], [math.inf])
    assert (scalar.labels, scalar.times.tolist(), scalar.values.tolist()) == ({}, [1.5], [7])


def test_warnings_infos_and_a_partial_answer_are_told():
    answer = parse(body([], warnings=["a store is out"], infos=["not a counter"], isPartial=True))

    assert answer.notes == ("a store is out", "not a counter")
    assert answer.partial
    assert not parse(body([])).partial


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>",
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[60,"1"]',
        b"[1]",
        b'{"status":"success"}',
        b'{"status":"success","data":{"resultType":"string","result":[1,"x"]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"labels":{}}]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":{"metric":{},"values":[]}}}',
        b'{"status":"success","data":{"resultType":"scalar","result":"7"}}',
        b'{"metric":{},"values":[]}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":[1]},"values":[[60,"1"]]}]}}',
        b"[" * 100_000,
        b"\xff\xfe\xfa",
    ],
)
def test_what_is_no_answer_is_called_so(text):
    with pytest.raises(Malformed):
        parse(text).series()


@given(
    junk=st.recursive(
        st.none() | st.text() | st.floats() | st.just(10**400) | st.integers(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_json_is_an_answer_or_called_none(junk):
    try:
        series = parse(body([{"metric": {}, "values": junk}])).series()
    except Malformed:
        return
    assert all(np.all(np.diff(found.times) > 0) for found in series)
