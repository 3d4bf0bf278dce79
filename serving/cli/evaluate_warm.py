"""``gsa evaluate warm``: what warm capacity would have been worth, on demand series or on the jobs of a history."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from advisor.domain.jobs import Job
from advisor.domain.units import counted, parse_duration
from advisor.domain.warm_reports import KEEP_ALIVE, WarmComparison, WarmReport
from advisor.errors import Refused
from advisor.settings import load_settings
from advisor.telemetry.series import read_series
from dashboards.report import warm_report_html
from serving.cli.histories import FormatOption, SplitOption, TraceOption, known_history
from serving.cli.html_file import page_file, write_page
from serving.cli.options import ConfigOption, DebugOption, HtmlOption, OutputOption
from serving.cli.output import Output, minute, progress_bar, render, table
from serving.logs import set_up_logs
from training.warm_backtest import WarmEvaluation, evaluate_warm
from training.warm_replay import WarmWorld
from training.warm_trace import evaluate_warm_on_jobs

__all__ = ["warm", "warm_tables"]

_WHOLE = "whole"


def warm(
    series: Annotated[
        list[Path] | None, typer.Option("--series", help="Demand series (CSV); may be repeated.", show_default=False)
    ] = None,
    mapping: Annotated[
        list[Path] | None,
        typer.Option(
            "--mapping",
            help="TOML file naming the columns: one for each series, or one for all; of a trace with --format table.",
            show_default=False,
        ),
    ] = None,
    trace: TraceOption = None,
    trace_format: FormatOption = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="Only jobs of this namespace.", show_default=False)
    ] = None,
    start_latency: Annotated[
        str, typer.Option("--start-latency", help="From asking for a node to a usable GPU, as 5m.")
    ] = "5m",
    start_cost: Annotated[
        str, typer.Option("--start-cost", help="Time of a node that each start wastes besides its boot, as 1m.")
    ] = "0s",
    boot_billed: Annotated[bool, typer.Option("--boot-billed/--boot-free", help="Whether booting is paid for.")] = True,
    node_gpus: Annotated[int, typer.Option("--node-gpus", min=1, max=64, help="GPUs of a node, for jobs.")] = 8,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=100, help="Draws of how jobs fall into nodes.")] = 10,
    split: SplitOption = 0.7,
    html: HtmlOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Replay warm capacity on the last 30 % in time, beside keep-alive alone and what perfect foresight would give.

    Several series are replayed apart, and as one pool that shares its nodes. Without a series, jobs are replayed on
    nodes: of the trace, or of the store.
    """
    del debug
    set_up_logs()
    target = None if html is None else page_file(html)
    world = WarmWorld(
        node_gpus=node_gpus,
        latency_minutes=_minutes(start_latency, "--start-latency", least=1e-9),
        boot_billed=boot_billed,
        start_cost_minutes=_minutes(start_cost, "--start-cost", least=0.0),
    )
    plan = WarmEvaluation(split=split, world=world)
    if series:
        if trace is not None:
            raise Refused("--trace", str(trace), "series and a trace exclude each other", "Give one of them.")
        report = _of_series(series, mapping or [], plan)
    else:
        known = known_history(load_settings(config), trace, trace_format, mapping[0] if mapping else None)
        report = _of_jobs(known.jobs, namespace, (plan, seeds))
        report = replace(report, protocol=replace(report.protocol, synthetic=known.synthetic))
    if target is not None:
        write_page(target, warm_report_html(report))
    render(output, report.to_json(), lambda: warm_tables(report))


def _of_series(series: list[Path], mapping: list[Path], plan: WarmEvaluation) -> WarmReport:
    if len(mapping) not in (1, len(series)):
        limit = f"{len(series)} series need as many, or one for all"
        raise Refused("--mapping", len(mapping), limit, "Repeat --mapping.")
    pairs = zip(series, mapping * len(series) if len(mapping) == 1 else mapping, strict=True)
    known = [one for path, its in pairs for one in read_series(path, its)]
    gpus = {one.node_gpus for one in known}
    world = replace(plan.world, node_gpus=gpus.pop()) if len(gpus) == 1 else plan.world
    with progress_bar("evaluate") as step:
        return evaluate_warm(known, replace(plan, world=world), step)


def _of_jobs(jobs: list[Job], namespace: str | None, how: tuple[WarmEvaluation, int]) -> WarmReport:
    plan, seeds = how
    mine = jobs if namespace is None else [job for job in jobs if job.namespace == namespace]
    if not mine:
        known = ", ".join(sorted({job.namespace for job in jobs if job.namespace})[:20]) or "none"
        raise Refused("--namespace", namespace, f"no job is of it; namespaces are {known}", "Name one of them.")
    with progress_bar("evaluate") as step:
        return evaluate_warm_on_jobs(mine, namespace or _WHOLE, plan, seeds, step)


def _minutes(text: str, option: str, least: float) -> float:
    minutes = parse_duration(text, option) / 60.0
    if minutes < least:
        raise Refused(option, text, "it must be above 0", "Write 5m.")
    return minutes


_COLUMNS = ("pool, policy", "cost", "wait", "against keep-alive", "node starts")
_WORDS = (
    "wait: GPU-minutes of unmet demand per GPU-minute demanded, in seconds, at the same cost for every policy. cost: "
    "node-minutes paid over wanted, boots paid. A dash: the policy has no setting at that cost."
)


def warm_tables(report: WarmReport) -> list[Table | str]:
    """Every policy of every pool at equal cost."""
    pools = dict(report.pools) | ({"apart, summed up": report.apart} if report.apart else {})
    rows = [row for pool, one in pools.items() for row in _rows(pool, one)]
    protocol = report.protocol
    origin = f"{counted(protocol.rows, 'row')}, split at {minute(protocol.split_time)} UTC"
    return [
        table("warm capacity: waits at equal cost on the held-out part", _COLUMNS, rows),
        _WORDS,
        *(f"- {pool}: {one.served} is served; {one.reason}" for pool, one in pools.items()),
        f"{origin}, {counted(protocol.refits, 'fit')}. Every setting of every policy: --output json, or --html FILE",
        *(f"- assumed: {assumption}" for assumption in protocol.assumed),
    ]


def _rows(pool: str, one: WarmComparison) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for cost, policies in one.at_equal_cost.items():
        for name, at in policies.items():
            wait = None if at.mean_wait_minutes is None else f"{60 * at.mean_wait_minutes:.3f} s"
            change = None if at.relative_to_keep_alive is None else f"{100 * at.relative_to_keep_alive:+.0f} %"
            starts = None if at.node_starts is None else f"{at.node_starts:.0f}"
            rows.append((f"{pool}, {name}", cost, wait, None if name == KEEP_ALIVE else change, starts))
    return rows
