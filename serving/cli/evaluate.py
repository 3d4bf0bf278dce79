"""``gsa evaluate``: the measured quality, on a trace or on the store, under a stated protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from advisor.domain.reports import DemandReport, HorizonScores
from advisor.domain.units import SECONDS_PER_MINUTE, counted, shown_duration
from advisor.errors import Refused
from advisor.forecast.registry import CHALLENGER, CHAMPION
from advisor.settings import load_settings
from advisor.telemetry.series import read_series
from dashboards.report import duration_report_html
from serving.cli.evaluate_packing import packing
from serving.cli.evaluate_warm import warm
from serving.cli.histories import FormatOption, MappingOption, SplitOption, TraceOption, known_history
from serving.cli.html_file import page_file, write_page
from serving.cli.options import ConfigOption, DebugOption, HtmlOption, OutputOption
from serving.cli.output import Output, minute, note, progress_bar, render, stages, table
from serving.cli.training import backtest_settings, duration_tables
from serving.logs import set_up_logs
from serving.wiring import open_registry
from training.backtest import evaluate_durations
from training.demand_backtest import evaluate_demand
from training.pipeline import registered_durations

__all__ = ["app", "demand_tables"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The measured quality on a trace or on the store.")

EveryGroupOption = Annotated[
    bool,
    typer.Option("--every-group", help="Print by the baseline's key, by actual duration and by age of the job too."),
]


@app.callback()
def _group() -> None:
    """The measured quality on a trace or on the store."""


app.command("packing")(packing)


@app.command("durations")
def durations(
    trace: TraceOption = None,
    trace_format: FormatOption = None,
    mapping: MappingOption = None,
    split: SplitOption = 0.7,
    every_group: EveryGroupOption = False,
    html: HtmlOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Replay the held-out part: questions in order of submission, answers in order of completion.

    On the store, champion and challenger are scored too if they were fitted before the held-out part began.
    """
    del debug
    set_up_logs()
    # An evaluation takes minutes: what cannot be written is said before it.
    target = None if html is None else page_file(html)
    settings = load_settings(config)
    history = known_history(settings, trace, trace_format, mapping)
    registered = registered_durations(open_registry(settings), CHAMPION, CHALLENGER) if trace is None else None
    with stages("evaluate") as progress:
        report = evaluate_durations(history.jobs, backtest_settings(settings, split), progress, registered)
    report = replace(report, protocol=replace(report.protocol, synthetic=history.synthetic))
    if target is not None:
        write_page(target, duration_report_html(report))
        note(f"the report is written to {target}")
    render(output, report.to_json(), lambda: duration_tables(report, every_group=every_group))


@app.command("demand")
def demand(
    series: Annotated[list[Path], typer.Option("--series", help="Demand series (CSV); may be repeated.")],
    mapping: Annotated[
        list[Path], typer.Option("--mapping", help="Its mapping (TOML); one for each series, or one for all.")
    ],
    horizons: Annotated[str, typer.Option("--horizons", help="Minutes ahead, with commas.")] = "10,30,60",
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Losses, coverage and skill of the demand forecast on the last 30 % in time, beside the baselines."""
    del debug, config
    set_up_logs()
    pairs = zip(series, _one_each(mapping, len(series)), strict=True)
    known = [one for path, its in pairs for one in read_series(path, its)]
    with progress_bar("evaluate") as step:
        report = evaluate_demand(known, _minutes(horizons), progress=step)
    render(output, report.to_json(), lambda: demand_tables(report))


def _one_each(mapping: list[Path], series: int) -> list[Path]:
    if len(mapping) == 1:
        return mapping * series
    if len(mapping) != series:
        raise Refused("--mapping", len(mapping), f"{series} series need as many, or one for all", "Repeat --mapping.")
    return mapping


def _minutes(text: str) -> tuple[int, ...]:
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError as error:
        raise Refused("--horizons", text, "horizons are whole minutes with commas", "Write 10,30,60.") from error
    if found[0] < 1:
        raise Refused("--horizons", text, "a horizon is at least one minute ahead", "Write 10,30,60.")
    return found


_DEMAND_COLUMNS = ("pool, ahead", "served", "skill", "P90 loss", "MAE", "P90 coverage")
_DEMAND_WORDS = (
    "P90 loss: pinball loss of the 90 % quantile against that of constant (the present plus the changes this pool has "
    "always seen). MAE: error of the median against that of persistence (as now). skill: share of the loss saved "
    "against the best baseline. P90 coverage: share below and share up to the quantile, honest where 0.9 lies between."
)


def demand_tables(report: DemandReport) -> list[Table | str]:
    """Every pool at every horizon, the model beside the simplest baselines."""
    rows = [
        _demand_row(f"{pool}, {shown_duration(minutes * SECONDS_PER_MINUTE)}", scores)
        for pool, horizons in report.pools.items()
        for minutes, scores in horizons.items()
    ]
    protocol = report.protocol
    origin = f"{counted(protocol.rows, 'sample')}, split at {minute(protocol.split_time)} UTC"
    return [
        table("demand: the model on the held-out part", _DEMAND_COLUMNS, rows),
        _DEMAND_WORDS,
        f"{origin}, {counted(protocol.refits, 'fit')}. Every level and baseline: --output json",
        *(f"- assumed: {assumption}" for assumption in protocol.assumed),
    ]


def _demand_row(name: str, scores: HorizonScores) -> tuple[object, ...]:
    model, constant = scores.pinball["model"], scores.pinball.get("constant", {})
    loss = _relative(model.get("0.9"), constant.get("0.9"))
    mae = _relative(scores.mae.get("model"), scores.mae.get("persistence"))
    bracket = scores.coverage.get("0.9")
    covered = None if bracket is None else f"{bracket[0]:.3f}-{bracket[1]:.3f}"
    return (name, scores.served, scores.skill, loss, mae, covered)


def _relative(ours: float | None, theirs: float | None) -> str | None:
    return None if ours is None or not theirs else f"{100 * (ours / theirs - 1):+.1f} %"


app.command("warm")(warm)
