from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import Refused
from advisor.telemetry.prometheus.selectors import Matcher, Selector, any_of, narrowed

# An alphabet of both would be one set of characters, among which those that matter hardly ever come.
texts = st.lists(st.one_of(st.sampled_from('\\"\n\ufffd{}a'), st.characters(exclude_categories=["Cs"]))).map("".join)


def _unquoted(quoted: str) -> str:
    """What a server reads: a quoted text on one line, with the escapes that it shares with JSON."""
    assert "\n" not in quoted
    assert "\ufffd" not in quoted
    return json.loads(quoted, strict=False)


@given(value=texts)
def test_a_server_reads_the_value_that_was_meant(value):
    written = str(Matcher("pod", "=", value))

    assert _unquoted(written.removeprefix("pod=")) == value


@given(values=st.lists(texts, min_size=1), other=texts)
def test_a_set_of_values_matches_each_of_them_and_nothing_else(values, other):
    pattern = re.compile(any_of(values))

    assert all(pattern.fullmatch(value) for value in values)
    assert bool(pattern.fullmatch(other)) == (other in values)


def test_a_plain_metric_is_named_and_a_pattern_matched():
    job = Matcher("job", "!~", "test-.*")

    assert str(Selector("up")) == "up"
    assert str(Selector("up", (job,))) == 'up{job!~"test-.*"}'
    assert str(Selector("a|b", (job,))) == '{__name__=~"a|b",job!~"test-.*"}'


def test_narrowing_adds_a_matcher_once_and_leaves_the_selector_as_it_was():
    selector = Selector("up", (Matcher("job", "=", "a"),))
    cluster = Matcher("cluster", "=", 'x"} or vector(1) or up{y="')

    once = narrowed(selector, [cluster])

    assert narrowed(once, [cluster]) == once
    assert str(once) == 'up{job="a",cluster="x\\"} or vector(1) or up{y=\\""}'
    assert str(selector) == 'up{job="a"}'


@pytest.mark.parametrize("label, value", [("", "x"), ("a-b", "x"), ('a="1",b', "x"), ("1a", "x"), ("a", "\ud800")])
def test_what_a_query_cannot_hold_is_refused(label, value):
    with pytest.raises(Refused):
        Matcher(label, "=", value)
