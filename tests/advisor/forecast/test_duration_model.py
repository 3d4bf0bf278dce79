"""The fitted model as an artefact: text and JSON, the same after a journey, refused when it is not itself."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from advisor.errors import Refused
from advisor.features.duration import DURATION_SCHEMA
from advisor.features.latest import LATEST
from advisor.forecast.blend import BlendSettings
from advisor.forecast.duration import DurationModel


@pytest.fixture
def saved(model, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def write(folder: Path, text: str):
    """Another document, signed as whoever saved it would have."""
    (folder / "model.json").write_text(text)
    (folder / "model.sha256").write_text(hashlib.sha256(text.encode()).hexdigest())


def edit(folder: Path, **changes):
    write(folder, json.dumps({**json.loads((folder / "model.json").read_text()), **changes}))


def test_a_saved_model_is_text_and_comes_back_equal(model, saved):
    names = ["forest-0.txt", "forest-1.txt", "hazard.txt", "model.json", "model.sha256"]
    assert sorted(path.name for path in saved.iterdir()) == names
    assert all(path.read_bytes().decode().isprintable() or "\n" in path.read_text() for path in saved.iterdir())
    loaded = DurationModel.load(saved)
    assert (loaded, loaded.version, hash(loaded)) == (model, model.version, hash(model))
    rows = np.random.default_rng(1).normal(5.0, 2.0, size=(50, len(DURATION_SCHEMA)))
    assert np.array_equal(loaded.leaves_of(rows), model.leaves_of(rows))
    latest = np.random.default_rng(2).normal(3.0, 3.0, size=(50, LATEST)).astype(np.float32)
    assert np.array_equal(loaded.hazard.cdfs(rows, latest), model.hazard.cdfs(rows, latest))
    assert (loaded.prior, loaded.blend, loaded.calibration) == (model.prior, model.blend, model.calibration)
    assert [q.job for q in loaded.questions] == [q.job for q in model.questions]


def test_another_model_has_another_version(model):
    assert replace(model, decay_days=8.0).version != model.version
    assert replace(model, questions=model.questions[1:]).version != model.version
    hazard = replace(model.hazard, text=model.hazard.text + " ")
    assert replace(model, hazard=hazard).version != model.version
    assert replace(model, blend=BlendSettings(prior=(0.5, 0.5, 0.0))).version != model.version
    assert replace(model) == model


@pytest.mark.parametrize("name", ["forest-1.txt", "hazard.txt", "model.json"])
def test_a_tampered_file_is_refused_by_name(saved, name):
    (saved / name).write_text((saved / name).read_text() + " ")
    with pytest.raises(Refused, match=re.escape(name)):
        DurationModel.load(saved)


@pytest.mark.parametrize("missing", ["model.json", "forest-0.txt", "hazard.txt", "model.sha256"])
def test_an_incomplete_folder_is_refused(saved, missing):
    (saved / missing).unlink()
    with pytest.raises(Refused, match="model folder"):
        DurationModel.load(saved)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 2, "forests": 3}', "\x00"])
def test_a_damaged_document_is_refused(saved, text):
    write(saved, text)
    with pytest.raises(Refused, match="model folder"):
        DurationModel.load(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"prior": {"log_edges": [0.0, 1.0, 2.0], "cdf": [0.0, 0.9, 0.5]}},
        {"grid": {"step": 0.0, "cells": 3, "tail": 1.0}},
        {"fitted_at": "0001-01-01T00:00:00+14:00"},
    ],
)
def test_a_signed_document_that_makes_no_sense_is_refused_and_no_defect(saved, changes):
    edit(saved, **changes)
    with pytest.raises(Refused):
        DurationModel.load(saved)


@pytest.mark.parametrize("other", [1, 3])
def test_another_format_is_refused(saved, other):
    edit(saved, format=other)
    with pytest.raises(Refused, match=f"model format: {other}"):
        DurationModel.load(saved)


def test_a_model_of_other_columns_is_refused_naming_the_first(saved):
    columns = list(DURATION_SCHEMA.names)
    edit(saved, columns=[*columns[:3], "mean_5", *columns[4:]])
    with pytest.raises(Refused, match=f"'mean_5' is refused; column 3 is '{columns[3]}'"):
        DurationModel.load(saved)
    edit(saved, columns=columns, fingerprint="0")
    with pytest.raises(Refused, match="a meaning or a unit has changed"):
        DurationModel.load(saved)


def test_a_gap_no_row_of_the_fit_had_is_filled_where_the_request_left_it_and_refused_where_history_did(model):
    """Field report A16: a tree that never met a gap reads it as zero."""
    full = np.full((3, len(DURATION_SCHEMA)), 2.0)
    nodes, count = DURATION_SCHEMA.names.index("nodes"), DURATION_SCHEMA.names.index("og_count")
    full[1, nodes] = np.nan
    full[2, count] = np.nan
    rows, readable, reasons = model.readable(full)
    assert readable.tolist() == [True, True, False]
    assert rows[1, nodes] == model.usual["nodes"] == 1.0
    assert reasons[0] == ()
    assert reasons[1] == ("unknown_nodes: taken as 1, the usual",)
    assert reasons[2][0].startswith("no_history: og_count is unknown")
