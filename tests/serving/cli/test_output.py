"""Tables for people: they fit a terminal of 80 columns, say each thing once, and in words."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from advisor.domain.ingest import Rejection
from advisor.domain.reports import (
    DemandReport,
    DurationReport,
    DurationScores,
    HeadToHead,
    HorizonScores,
    OutcomeScores,
    RunningScores,
    RunProtocol,
)
from advisor.history.status import HistoryStatus, SourceStatus
from advisor.settings import Settings
from advisor.telemetry.collector import Collected
from serving.cli.advise_tables import advice_tables
from serving.cli.collected import rejection_documents, tables
from serving.cli.demand_tables import demand_tables
from serving.cli.history import history_tables
from serving.cli.output import kept_in, phase, show, table
from serving.cli.training import duration_tables, quality_tables
from tests.builders import NOON
from tests.serving.fake_values import an_advice

PREDICTORS = ("median_of_5", "model", "champion", "challenger")
SCORES = DurationScores(
    n=24_675,
    log_mae=1.125,
    within_2x=0.597,
    typical_within_2x=0.599,
    crps_log=0.812,
    pinball_log={"0.9": 0.419},
    coverage={"0.9": 0.877},
)
PROTOCOL = RunProtocol(
    data_digest="19554b6d0afa9f28", rows=82_247, split_time=NOON, refits=7, seed=1, versions={}, assumed=()
)


def a_report() -> DurationReport:
    """The widest there is: four predictors, large numbers."""

    def of_each(*groups: str) -> dict[str, dict[str, DurationScores]]:
        return {name: dict.fromkeys(groups, SCORES) for name in PREDICTORS}

    return DurationReport(
        protocol=PROTOCOL,
        scores=dict.fromkeys(PREDICTORS, SCORES),
        by_history=of_each("warm", "cold"),
        by_gpus=of_each("1", "128"),
        served="model",
        by_decade=of_each("10", "100000"),
        by_key=of_each("namespace+gpus", "all"),
        running={name: {"600": RunningScores(n=9_999, coverage={"0.9": 0.9})} for name in PREDICTORS},
        outcomes={"cancelled": OutcomeScores(n=9_999, rate=0.123, brier=0.123, brier_rate=0.123, brier_owner=0.123)},
        versus={"challenger": HeadToHead(since=NOON, model=SCORES, rival=SCORES)},
    )


def a_demand_report() -> DemandReport:
    pinball = {"model": {"0.9": 0.1}, "constant": {"0.9": 0.2}}
    scores = HorizonScores(
        n=4_000,
        pinball=pinball,
        mae={"model": 1.0, "persistence": 2.0},
        coverage={"0.9": (0.871, 0.912)},
        skill=0.123,
        served="hour_of_day",
    )
    return DemandReport(protocol=PROTOCOL, pools={"training": {1440: scores}})


def shown(parts: Sequence[Table | str], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def a_status() -> HistoryStatus:
    source = SourceStatus(
        source="philly-users",
        jobs=15_000,
        outcomes={"cancelled": 1_953, "completed": 8_538, "failed": 4_509},
        first_submit=NOON,
        last_event=NOON,
        watermark=NOON,
        last_ingest=NOON,
        synthetic=True,
        notes=(),
        rejections=(),
    )
    return HistoryStatus(sources=(source,))


REPORTS = {
    "history": lambda: history_tables(a_status()),
    "durations": lambda: duration_tables(a_report()),
    "durations, every group": lambda: duration_tables(a_report(), every_group=True),
    "demand": lambda: demand_tables(a_demand_report()),
    "advice": lambda: advice_tables(an_advice(), Settings()),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_table_of_a_report_loses_nothing_in_80_columns(name: str) -> None:
    for part in REPORTS[name]():
        if isinstance(part, Table):
            assert shown([part], 80).split() == shown([part], 300).split()


def test_measures_are_rows_and_predictors_are_columns() -> None:
    lines = shown(quality_tables(a_report())).splitlines()
    assert any(all(name in line for name in PREDICTORS) for line in lines)
    for measure in ("log MAE", "in 2x", "typical 2x", "CRPS", "P90 loss", "P90 coverage"):
        assert any(line.startswith(f"│ {measure} ") for line in lines), measure


def test_warm_and_cold_and_every_gpu_count_are_told_in_every_measure() -> None:
    """Loss and coverage of each quantile too, of each predictor, on groups that may be many."""
    gpus = {name: dict.fromkeys(("1", "2", "3", "4", "8", "16", "128"), SCORES) for name in PREDICTORS}
    parts = duration_tables(replace(a_report(), by_gpus=gpus))
    losses = [f"P{level} loss" for level in (50, 90, 95)]
    coverages = [f"P{level} coverage" for level in (50, 80, 90, 95)]
    for name in PREDICTORS:
        told = [part for part in parts if isinstance(part, Table) and str(part.title) == f"{name}, by history and GPUs"]
        for part in told:
            text = shown([part], 80)
            for measure in ("log MAE", "in 25 %", "in 2x", "typical 2x", *losses, *coverages):
                assert f"│ {measure} " in text, (name, measure)
        groups = " ".join(shown([part], 80) for part in told).split()
        assert {"warm", "cold", *gpus[name]} <= set(groups)


def test_groups_that_few_ask_for_are_printed_when_asked_for() -> None:
    usual, whole = (shown(duration_tables(a_report(), every_group=every)) for every in (False, True))
    assert "--every-group" in usual
    assert "--every-group" not in whole
    for title in ("log MAE by baseline's key", "log MAE by actual duration", "P90 coverage, jobs already run"):
        assert (title in usual, title in whole) == (False, True)


def test_every_word_of_the_quality_table_is_explained_below_it() -> None:
    said = " ".join(shown(quality_tables(a_report())).split())
    for measure in ("log MAE:", "in 2x:", "typical 2x:", "CRPS:", "P90 loss:", "P90 coverage:"):
        assert measure in said


def test_advice_says_each_reason_once() -> None:
    advice = an_advice()
    pool = advice.pools[0]
    reason = "no node pays for itself"
    change = replace(pool.changes[0], reasons=(reason,))
    pool = replace(pool, changes=(change,), reasons=(f"warm capacity: {reason}", "limit: none is added"))

    said = shown(advice_tables(replace(advice, pools=(pool,)), Settings(), manifests=False), 200)

    assert said.count(reason) == 1
    assert "limit: none is added" in said


def test_advice_gives_lengths_their_unit_and_can_leave_the_manifests_out() -> None:
    advice = an_advice()
    length = advice.pools[0].slice_plan.classes[0].minutes

    assert f"{length:.3g} min" in shown(advice_tables(advice, Settings()), 200)
    assert "apiVersion" in shown(advice_tables(advice, Settings()), 200)
    assert "apiVersion" not in shown(advice_tables(advice, Settings(), manifests=False), 200)


def test_where_a_manifest_is_of_no_use_is_said_above_it() -> None:
    advice = an_advice()
    pool = replace(advice.pools[0], manifest_notes=("this pool's jobs all came from Slurm",))

    said = shown(advice_tables(replace(advice, pools=(pool,)), Settings()), 200)

    assert said.index("# note: this pool's jobs all came from Slurm") < said.index("apiVersion")


def test_a_change_names_the_object_that_it_belongs_to() -> None:
    said = shown(advice_tables(an_advice(), Settings()), 200)

    for pool in an_advice().pools:
        for change in pool.changes:
            assert f"change {change.object} {change.field}: {change.old} -> {change.new}" in said


def test_lengths_in_use_that_were_only_assumed_are_called_so() -> None:
    assert "in use: assumed" not in shown(advice_tables(an_advice(), Settings()), 200)
    assert "in use: assumed" in shown(advice_tables(replace(an_advice(), cluster_assumed=True), Settings()), 200)


def test_values_are_written_as_people_write_them() -> None:
    cells = shown([table("t", ("what", "value"), [("a", ["champion"]), ("b", False), ("c", ()), ("d", 24_675)])])
    for written in ("champion", "no", "24,675"):
        assert f" {written} " in cells
    assert "[" not in cells


def test_what_others_wrote_is_printed_as_it_stands(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    odd = ["nodes=[karpenter.sh/nodepool,nvidia.com/gpu.product,...]", "[red]x[/red]", "[/]", "a:bug:b", "\\[x"]
    show([table(odd[0], ("[bold]what", "value"), [(each, each) for each in odd]), *odd, f"- {odd[0]}"])
    out = capsys.readouterr().out
    assert [out.count(each) for each in odd] == [5, 3, 3, 3, 3]
    assert "[bold]what" in out


def test_prose_begins_at_the_left_and_numbers_end_at_the_right() -> None:
    lines = shown(
        [table("t", ("reason", "count", "example"), [("a", 5, "b"), ("c", 1000, "d" * 20)], prose=["example"])]
    )
    assert "│ a      │     5 │ b    " in lines


def test_jobs_pods_and_samples_left_out_are_counted_apart() -> None:
    rejections = (
        Rejection(reason="out_of_range", count=2_000, example="x"),
        Rejection(reason="infinite", count=7, example="x"),
        Rejection(reason="placeholder", count=3, example="x"),
    )
    done = Collected(
        source="prometheus",
        added=1,
        changed=0,
        unchanged=0,
        rejections=rejections,
        notes=(),
        watermark=None,
        synthetic=False,
    )
    status = HistoryStatus(sources=(replace(a_status().sources[0], rejections=rejections),))

    lines = [" ".join(line.replace("│", " ").split()) for line in shown(tables(done)).splitlines()]

    assert {"jobs added 1", "jobs left out 0", "pods left out 3", "samples left out 2,007"} <= set(lines)
    assert "left out in all: 3 pods, 2,007 samples" in shown(history_tables(status))
    assert [each["of"] for each in rejection_documents(rejections)] == ["samples", "samples", "pods"]


def test_jobs_that_are_open_stand_as_of_the_last_event_and_others_do_not() -> None:
    outcomes = {"completed": 5, "running": 2, "waiting": 1}
    (source,) = a_status().sources

    said = shown(history_tables(HistoryStatus(sources=(replace(source, outcomes=outcomes),))), 200)

    assert "- philly-users: 5 completed; at its last event 2 running and 1 waiting" in said
    assert "look from the last submission" in said
    assert "look from the last submission" not in shown(history_tables(a_status()), 200)


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_long_bullet_goes_on_under_its_text(monkeypatch, capsys, indent: str) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    reason = "the /path/that/is/far/too/long-for-a-line.db is kept whole and all the rest is wrapped"

    show([f"{indent}- {reason}", "- short"])

    first, *more, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{indent}- the")
    assert len(more) >= 2
    assert all(line.startswith(f"{indent}  ") and line[len(indent) + 2] != " " for line in more)
    assert last == "- short"
    assert any("/path/that/is/far/too/long-for-a-line.db" in line for line in more)
    assert " ".join(f"{first} {' '.join(more)}".split()) == f"- {reason}"


def test_prose_is_wrapped_between_words_and_the_name_of_a_command_is_not(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    show(["Nothing is here yet; run gsa train, then look again.", "  change a b: one to another one"])
    assert capsys.readouterr().out.splitlines() == [
        "Nothing is here yet; run",
        "gsa train, then look again.",
        "  change a b: one to another",
        "  one",
    ]


def test_what_takes_a_while_is_said_in_a_line_where_nobody_watches(capsys) -> None:
    with phase("advise", "replaying the history"):
        said = capsys.readouterr()
    assert (said.out, said.err) == ("", "advise: replaying the history\n")


def test_manifests_and_other_text_are_printed_as_they_are(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    text = "- kind: NodePool\n  spec: {}\n- kind: Deployment"
    show([text])
    assert capsys.readouterr().out == text + "\n"


def test_where_things_are_kept_is_said_with_the_command_that_looks_there(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert "GSA_STORAGE__HOME=.gsa/demo/x gsa history status" in kept_in(Path(".gsa/demo/x"))
    assert "GSA_STORAGE__HOME=.gsa/demo/x gsa history status" in kept_in(tmp_path / ".gsa/demo/x")
