"""``gsa advise``: one cycle on the store and a cluster, printed; nothing is written unless the mode is Apply."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from advisor.clock import SystemClock
from advisor.domain.plans import Advice, PoolAdvice
from advisor.domain.units import shown_duration
from advisor.reconciler.patches import to_yaml
from advisor.settings import Settings, load_settings
from serving.advice_json import advice_document
from serving.cli.options import AsOfOption, ConfigOption, DebugOption, OutputOption, moment_of
from serving.cli.output import Output, render, table
from serving.live import LiveAdvisor, LiveParts
from serving.logs import set_up_logs
from serving.wiring import ClusterChoice, ClusterKind, open_history, open_registry

__all__ = ["advice_tables", "app"]

app = typer.Typer(add_completion=False, help="One cycle, printed.")

ClusterOption = Annotated[ClusterKind, typer.Option("--cluster", help="The cluster to look at.")]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster-file",
        help="TOML description of the cluster in memory; without one it is made from the history.",
        show_default=False,
    ),
]
NodeGpusOption = Annotated[
    int, typer.Option("--node-gpus", min=1, max=64, help="GPUs of a node where none is described.")
]


@app.command()
def advise(
    cluster: ClusterOption = ClusterKind.MEMORY,
    cluster_file: FileOption = None,
    node_gpus: NodeGpusOption = 8,
    as_of: AsOfOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Observe, build features, forecast, plan and print the advice with its reasons."""
    del debug
    set_up_logs("cycle_failed")
    settings = load_settings(config)
    choice = ClusterChoice(kind=cluster, file=cluster_file, node_gpus=node_gpus)
    with open_history(settings) as history:
        live = LiveAdvisor(
            LiveParts(
                settings=settings,
                history=history,
                registry=open_registry(settings),
                clock=SystemClock(),
                cluster=choice,
                as_of=moment_of(as_of),
            )
        )
        live.refresh()
        advice = live.advice()
    render(output, advice_document(advice), lambda: advice_tables(advice, settings))


def advice_tables(advice: Advice, settings: Settings) -> list[Table | str]:
    """The advice for a person: one table over all pools, then each pool's changes, reasons and YAML."""
    label = "  [SYNTHETIC workload]" if advice.synthetic else ""
    columns = ("pool", "class", "slice min", "now", "rule of thumb", "warm GPUs", "keep-alive", "GPU limit", "sharing")
    rows = [row for pool in advice.pools for row in _pool_rows(pool)]
    parts: list[Table | str] = [
        table(f"advice as of {advice.time:%Y-%m-%d %H:%M} UTC, mode {advice.mode}{label}", columns, rows)
    ]
    for pool in advice.pools:
        parts += _pool_parts(pool)
    parts += [f"- {reason}" for reason in advice.reasons]
    return [*parts, f"prices: {settings.prices.per_gpu_hour:g} {settings.prices.currency} per GPU-hour (settings)"]


def _pool_rows(pool: PoolAdvice) -> list[tuple[object, ...]]:
    shared = (pool.warm.warm_gpus, shown_duration(pool.warm.keep_alive_seconds), pool.gpu_limit, pool.sharing_factor)
    return [
        (
            pool.pool,
            one.name,
            "do not slice" if one.minutes is None else f"{one.minutes:g}",
            one.current_minutes,
            one.rule_of_thumb_minutes,
            *shared,
        )
        for one in pool.slice_plan.classes
    ]


def _pool_parts(pool: PoolAdvice) -> list[Table | str]:
    parts: list[Table | str] = []
    if pool.changes:
        rows = [
            (
                change.field,
                change.old,
                change.new,
                "allowed" if change.allowed else "refused",
                "; ".join(change.reasons),
            )
            for change in pool.changes
        ]
        parts.append(table(f"{pool.pool}: proposed changes", ("field", "from", "to", "guards", "reasons"), rows))
    parts += [f"- {reason}" for one in pool.slice_plan.classes for reason in one.reasons]
    parts += [f"- {reason}" for reason in pool.reasons]
    manifests = [*([] if pool.patch is None else [pool.patch]), *pool.manifests]
    if manifests:
        parts.append(to_yaml(manifests))
    return parts
