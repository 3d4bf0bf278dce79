"""``gsa evaluate packing``: how much each placement policy gets onto the same nodes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from advisor.domain.packing_report import PackingReport
from advisor.telemetry.packing_lists import read_nodes, read_pods
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, progress_bar, render, table
from serving.logs import set_up_logs
from training.packing_departures import Autoscaling
from training.packing_evaluation import PackingSettings, evaluate_packing

__all__ = ["packing", "packing_tables"]

_COLUMNS = ("policy", "allocated %", "least", "most", "fragmented %")
_DEPARTURE_COLUMNS = ("policy", "node-hours over bound %", "node-hours", "boots", "mean wait s", "GPUs on empty nodes")


def packing(
    pods: Annotated[Path, typer.Option("--pods", help="List of pods (CSV or Parquet, OpenB columns).")],
    nodes: Annotated[Path, typer.Option("--nodes", help="List of nodes (CSV or Parquet, OpenB columns).")],
    load: Annotated[float, typer.Option("--load", help="GPUs asked for, as a multiple of those there are.")] = 1.3,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many random orders.")] = 10,
    departures: Annotated[
        bool, typer.Option("--departures", help="Let pods end too: on an autoscaled pool and on fixed nodes.")
    ] = False,
    prediction_error: Annotated[
        float, typer.Option("--prediction-error", min=0, help="With --departures: error of ln duration (sd).")
    ] = 1.0,
    boot_seconds: Annotated[
        float, typer.Option("--boot-seconds", min=0, help="With --departures: until a new node is usable.")
    ] = 180.0,
    empty_seconds: Annotated[
        float, typer.Option("--empty-seconds", min=0, help="With --departures: how long an empty node stays.")
    ] = 300.0,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Fill the nodes pod by pod under every policy: the share of GPUs allocated before nothing fits."""
    del debug, config
    set_up_logs()
    settings = PackingSettings(
        load=load,
        seeds=seeds,
        departures=departures,
        sd=prediction_error,
        autoscaling=replace(Autoscaling(), boot_seconds=boot_seconds, empty_seconds=empty_seconds),
        processes=os.cpu_count() or 1,
    )
    listed, hosts = read_pods(pods), read_nodes(nodes)
    with progress_bar("evaluate") as step:
        report = evaluate_packing(listed, hosts, settings, step)
    render(output, report.to_json(), lambda: packing_tables(report))


def packing_tables(report: PackingReport) -> list[Table | str]:
    """Every policy, the best first."""
    ranked = sorted(report.policies.items(), key=lambda item: -item[1].mean_allocated_percent)
    rows = [
        (name, s.mean_allocated_percent, min(s.allocated_percent), max(s.allocated_percent), s.fragmented_percent)
        for name, s in ranked
    ]
    parts: list[Table | str] = [table("packing: pods that do not end", _COLUMNS, rows)]
    ending = [(name, scores.departures) for name, scores in ranked if scores.departures is not None]
    if ending:
        cells = [
            (name, d.node_hours_over_bound_percent, d.node_hours, d.boots, d.mean_wait_seconds, d.gpus_on_empty_nodes)
            for name, d in ending
        ]
        parts.append(table("packing: pods that come and go", _DEPARTURE_COLUMNS, cells))
    return [*parts, *(f"- assumed: {assumption}" for assumption in report.protocol.assumed)]
