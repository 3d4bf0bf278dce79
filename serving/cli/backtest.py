"""``gsa backtest``: what a history would have waited and cost under every policy, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from advisor.domain.backtests import BacktestReport, MeasuredDifference, PolicyScores
from advisor.domain.units import counted, parse_duration
from advisor.settings import load_settings
from serving.cli.histories import FormatOption, MappingOption, SplitOption, TraceOption, known_history
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, minute, render, stages, table
from serving.cli.training import backtest_settings
from serving.logs import set_up_logs
from serving.wiring import prices_of
from training.policies import ADVISOR, MORE, ContestTerms
from training.policy_backtest import PolicyBacktest, backtest_policies

__all__ = ["app", "backtest_tables"]

app = typer.Typer(add_completion=False, help="What-if on a history, every policy side by side.")


@app.command()
def backtest(
    trace: TraceOption = None,
    trace_format: FormatOption = None,
    mapping: MappingOption = None,
    split: SplitOption = 0.7,
    node_gpus: Annotated[int, typer.Option("--node-gpus", min=1, help="GPUs of a node.")] = 8,
    start_latency: Annotated[
        str, typer.Option("--start-latency", help="From asking for a node to its GPUs, all of it paid.")
    ] = "5m",
    switch_cost: Annotated[
        str, typer.Option("--switch-cost", help="What stopping and resuming a job takes of its GPUs.")
    ] = "1m",
    checkpointable: Annotated[
        float, typer.Option("--checkpointable", min=0, max=1, help="Share of the jobs that may be stopped and moved.")
    ] = 0.0,
    quota_nodes: Annotated[
        int | None, typer.Option("--quota-nodes", min=1, help="At most so many nodes.", show_default=False)
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Runs; all but the first with submissions shaken by up to a minute.")
    ] = 1,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", help=f"One more policy; may be repeated: {', '.join(MORE)}, or all.", show_default=False
        ),
    ] = None,
    price: Annotated[
        float | None, typer.Option("--price", min=0, help="Of a GPU-hour; else as set.", show_default=False)
    ] = None,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, help="Replays at a time; else one a core.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Replay the held-out part of a history under every policy: waits, paid GPU time, starts, switches.

    Durations are foretold as they would have been served, refitted on schedule and without future.
    """
    del debug
    set_up_logs()
    settings = load_settings(config)
    terms = ContestTerms(
        node_gpus=node_gpus,
        start_latency_seconds=parse_duration(start_latency, "--start-latency"),
        switch_seconds=parse_duration(switch_cost, "--switch-cost"),
        checkpointable=checkpointable,
        quota_nodes=quota_nodes,
        seeds=seeds,
    )
    prices = prices_of(settings)
    plan = PolicyBacktest(
        terms=terms,
        durations=backtest_settings(settings, split),
        prices=prices if price is None else replace(prices, per_gpu_hour=price),
        more=MORE if policy and "all" in policy else tuple(policy or ()),
        workers=processes,
    )
    history = known_history(settings, trace, trace_format, mapping)
    with stages("backtest") as progress:
        report = backtest_policies(history.jobs, plan, progress, synthetic=history.synthetic)
    render(output, report.to_json(), lambda: backtest_tables(report, plan.prices.currency))


_WAITS = ("policy", "mean wait", "P95", "P99", "longest", "short jobs", "slowdown")
_SPENT = ("policy", "utilisation", "paid/useful", "cost", "starts", "stops", "moves")
_WORDS = (
    "Waits are in minutes, without the run: queue, boots, pauses and switches. Short jobs run up to 15 minutes. "
    "slowdown: (wait + duration) / duration, durations counted as 5 minutes at least. paid/useful: GPU time paid for "
    "over GPU time of use to jobs."
)
_SHOWN = ("mean_wait_minutes", "mean_short_wait_minutes", "paid_over_useful")


def backtest_tables(report: BacktestReport, currency: str) -> list[Table | str]:
    """The policies side by side, how sure the differences are, and what was assumed."""
    protocol = report.protocol
    jobs = next(iter(report.policies.values())).jobs
    sources = "generated" if protocol.synthetic else "as given"
    return [
        table(f"backtest: {counted(jobs, 'job')}", _WAITS, [_waits(n, s) for n, s in report.policies.items()]),
        table("GPU time", _SPENT, [_spent(n, s, currency) for n, s in report.policies.items()]),
        _WORDS,
        *(f"- {name}: {_setting(scores)}" for name, scores in report.policies.items() if scores.setting),
        table(
            "ours less theirs, with the interval that 95 % of resampled days gave",
            ("policy", *(name.removesuffix("_minutes").replace("_", " ") for name in _SHOWN)),
            [(name, *(_interval(found.get(m)) for m in _SHOWN)) for name, found in report.differences.items()],
        ),
        f"Ours is {ADVISOR}; against policies that may stop and move everything, it may too.",
        (
            f"{counted(protocol.rows, 'job')} ({sources}), split at {minute(protocol.split_time)} UTC, "
            f"{counted(protocol.refits, 'fit')}. Everything: --output json"
        ),
        *(f"- assumed: {assumption}" for assumption in protocol.assumed),
    ]


def _waits(name: str, scores: PolicyScores) -> Sequence[object]:
    return (
        name,
        f"{scores.mean_wait_minutes:.2f}",
        f"{scores.p95_wait_minutes:.2f}",
        f"{scores.p99_wait_minutes:.1f}",
        f"{scores.longest_wait_minutes:,.0f}",
        None if scores.mean_short_wait_minutes is None else f"{scores.mean_short_wait_minutes:.2f}",
        f"{scores.bounded_slowdown:,.2f}",
    )


def _spent(name: str, scores: PolicyScores, currency: str) -> Sequence[object]:
    return (
        name,
        f"{100 * scores.gpu_utilisation:.1f} %",
        f"{scores.paid_over_useful:.3f}",
        f"{scores.cost:,.0f} {currency}",
        scores.node_starts,
        scores.preemptions,
        scores.moves,
    )


def _setting(scores: PolicyScores) -> str:
    return ", ".join(f"{what.replace('_', ' ')} {value:g}" for what, value in scores.setting.items())


def _interval(found: MeasuredDifference | None) -> str | None:
    return None if found is None else f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
