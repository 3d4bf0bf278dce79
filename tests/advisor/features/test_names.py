"""Names of the same work run again are one: what differs from run to run is left out."""

import pytest

from advisor.features.names import template_of


@pytest.mark.parametrize(
    "one,other",
    [
        ("train-bert-17", "train-bert-18"),
        ("Train_BERT 2024-01-05", "train-bert-2025-12-31"),
        ("eval-a8f3e2c9", "eval-00bb17ff"),
        ("llama-x7k2p", "llama-bcd4f"),
        ("web-6d4cf56db6-x7k2p", "web-7f9b8c5d49-bcdfg"),
        ("run17", "run9"),
        ("sweep/lr=0.1/seed=3", "sweep/lr=0.25/seed=99"),
    ],
)
def test_runs_of_one_work_have_one_template(one, other):
    assert template_of(one) == template_of(other) is not None


@pytest.mark.parametrize(
    "one,other", [("train-bert", "train-gpt"), ("train", "eval"), ("decade", "facade"), ("train-1", "train-1-resume")]
)
def test_other_works_have_others(one, other):
    assert template_of(one) != template_of(other)


@pytest.mark.parametrize("name", ["", "4711", "2024-01-05", "---", "a8f3e2c9", "17_18"])
def test_a_name_of_nothing_but_numbers_names_no_work(name):
    assert template_of(name) is None
