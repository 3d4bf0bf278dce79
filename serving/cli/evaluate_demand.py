"""``gsa evaluate demand``: losses, coverage and skill of the demand forecast, on series or on the jobs of a trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from advisor.domain.reports import DemandReport
from advisor.errors import Refused
from advisor.features.demand_pools import PoolKey
from advisor.telemetry.series import read_series
from dashboards.report import demand_report_html
from serving.cli.demand_tables import demand_tables
from serving.cli.histories import FormatOption, jobs_of_trace
from serving.cli.html_file import page_file, write_page
from serving.cli.options import ConfigOption, DebugOption, HtmlOption, OutputOption
from serving.cli.output import Output, note, progress_bar, render
from serving.logs import set_up_logs
from training.demand_backtest import evaluate_demand
from training.demand_traces import TraceDemand, evaluate_demand_of_jobs

__all__ = ["demand"]


SeriesOption = Annotated[
    list[Path] | None, typer.Option("--series", help="Demand series (CSV); may be repeated.", show_default=False)
]
MappingOption = Annotated[
    list[Path] | None,
    typer.Option("--mapping", help="Its mapping (TOML); one for each series, or one for all.", show_default=False),
]
DemandTraceOption = Annotated[
    Path | None, typer.Option("--trace", help="A trace of jobs in place of series.", show_default=False)
]
ByOption = Annotated[PoolKey, typer.Option("--by", help="What makes a pool of a trace's jobs.")]
StepOption = Annotated[int, typer.Option("--step", min=1, help="Minutes between samples of a trace's demand.")]
NodeOption = Annotated[int, typer.Option("--node-gpus", min=1, help="GPUs that a node of a trace's pools has.")]
HorizonsOption = Annotated[str, typer.Option("--horizons", help="Minutes ahead, with commas.")]


def demand(
    series: SeriesOption = None,
    mapping: MappingOption = None,
    trace: DemandTraceOption = None,
    trace_format: FormatOption = None,
    by: ByOption = PoolKey.POOL,
    step: StepOption = 5,
    node_gpus: NodeOption = 8,
    horizons: HorizonsOption = "10,30,60",
    html: HtmlOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Losses, coverage and skill of the demand forecast on the last 30 % in time, beside the baselines.

    On a trace of jobs also what predicted durations are worth: the lower quantiles without the releases they
    foresee, with them, and with the true ones.
    """
    del debug, config
    set_up_logs()
    # An evaluation takes minutes: what cannot be written is said before it.
    target = None if html is None else page_file(html)
    minutes, maps = _minutes(horizons), mapping or []
    if trace is None:
        report = _of_series(series or [], maps, minutes)
    elif series or len(maps) > 1:
        raise Refused("--trace", str(trace), "series or a trace are evaluated, not both", "Leave one of them out.")
    else:
        shape = TraceDemand(key=by, step_minutes=step, node_gpus=node_gpus)
        jobs = jobs_of_trace(trace, trace_format, maps[0] if maps else None)
        with progress_bar("evaluate") as told:
            report = evaluate_demand_of_jobs(jobs.jobs, minutes, shape, told)
        report = replace(report, protocol=replace(report.protocol, synthetic=jobs.synthetic))
    if target is not None:
        write_page(target, demand_report_html(report))
        note(f"the report is written to {target}")
    render(output, report.to_json(), lambda: demand_tables(report))


def _of_series(paths: list[Path], maps: list[Path], minutes: tuple[int, ...]) -> DemandReport:
    if not paths:
        raise Refused("--series", None, "demand is evaluated on series or on a trace", "Name --series or --trace.")
    known = [
        one for path, its in zip(paths, _one_each(maps, len(paths)), strict=True) for one in read_series(path, its)
    ]
    with progress_bar("evaluate") as told:
        return evaluate_demand(known, minutes, progress=told)


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
