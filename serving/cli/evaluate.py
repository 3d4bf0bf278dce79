"""``gsa evaluate``: the measured quality, on a trace or on the store, under a stated protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from advisor.errors import Refused
from advisor.forecast.registry import CHALLENGER, CHAMPION
from advisor.history.store import HistoryStore
from advisor.settings import Settings, load_settings
from advisor.telemetry.traces import TraceFormat
from dashboards.report import duration_report_html
from serving.cli.evaluate_demand import demand
from serving.cli.html_file import page_file, write_page
from serving.cli.options import ConfigOption, DebugOption, HtmlOption, OutputOption
from serving.cli.output import Output, render, stages
from serving.cli.trace_file import TracedJobs, jobs_of_trace
from serving.cli.training import backtest_settings, duration_tables
from serving.logs import set_up_logs
from serving.wiring import open_registry
from training.backtest import evaluate_durations
from training.pipeline import registered_durations

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The measured quality on a trace or on the store.")

TraceOption = Annotated[
    Path | None, typer.Option("--trace", help="Trace file; without one, the store.", show_default=False)
]
FormatOption = Annotated[TraceFormat | None, typer.Option("--format", help="Layout of the trace.", show_default=False)]
MappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="TOML file naming the columns; for --format table.", show_default=False)
]
SplitOption = Annotated[
    float, typer.Option("--split", min=0.05, max=0.95, help="Share of the jobs, in time, before the held-out part.")
]


@app.callback()
def _group() -> None:
    """The measured quality on a trace or on the store."""


@app.command("durations")
def durations(
    trace: TraceOption = None,
    trace_format: FormatOption = None,
    mapping: MappingOption = None,
    split: SplitOption = 0.7,
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
    history = _stored(settings) if trace is None else jobs_of_trace(trace, trace_format, mapping)
    registered = registered_durations(open_registry(settings), CHAMPION, CHALLENGER) if trace is None else None
    with stages("evaluate") as progress:
        report = evaluate_durations(history.jobs, backtest_settings(settings, split), progress, registered)
    report = replace(report, protocol=replace(report.protocol, synthetic=history.synthetic))
    if target is not None:
        write_page(target, duration_report_html(report))
    render(output, report.to_json(), lambda: duration_tables(report))


def _stored(settings: Settings) -> TracedJobs:
    with HistoryStore.open(settings.storage.history) as store:
        last = store.last_event()
        if last is None:
            raise Refused("history", 0, "an evaluation needs jobs", "Ingest some (gsa ingest), or name a --trace.")
        return TracedJobs(store.jobs(last), store.is_synthetic())


app.command("demand")(demand)
