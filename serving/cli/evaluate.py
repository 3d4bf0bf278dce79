"""``gsa evaluate``: the measured quality, on a trace or on the store, under a stated protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from advisor.forecast.registry import CHALLENGER, CHAMPION
from advisor.settings import load_settings
from dashboards.report import duration_report_html
from serving.cli.evaluate_demand import demand
from serving.cli.evaluate_packing import packing
from serving.cli.evaluate_warm import warm
from serving.cli.histories import FormatOption, MappingOption, SplitOption, TraceOption, known_history
from serving.cli.html_file import page_file, write_page
from serving.cli.options import ConfigOption, DebugOption, HtmlOption, OutputOption
from serving.cli.output import Output, note, render, stages
from serving.cli.training import backtest_settings, duration_tables
from serving.logs import set_up_logs
from serving.wiring import open_registry
from training.backtest import evaluate_durations
from training.pipeline import registered_durations

__all__ = ["app"]

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


app.command("demand")(demand)
app.command("warm")(warm)
