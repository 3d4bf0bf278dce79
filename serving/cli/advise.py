"""``gsa advise``: one cycle on the store and a cluster, printed; nothing is written unless the mode is Apply."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.clock import SystemClock
from advisor.settings import load_settings
from serving.advice_json import advice_document
from serving.cli.advise_tables import advice_tables
from serving.cli.options import AsOfOption, ConfigOption, DebugOption, OutputOption, moment_of
from serving.cli.output import Output, phase, render
from serving.cli.root import ExitCode
from serving.live import LiveAdvisor, LiveParts
from serving.logs import set_up_logs
from serving.wiring import ClusterChoice, ClusterKind, open_history, open_registry

__all__ = ["ClusterOption", "FileOption", "NodeGpusOption", "app"]

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
    """Observe, build features, forecast, plan and print the advice with its reasons.

    Leaves with 4 where a pool could not be advised on; the others are printed all the same.
    """
    del debug
    set_up_logs()
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
        with phase("advise", "replaying the history, forecasting and planning"):
            live.refresh()
        advice = live.advice()
    render(output, advice_document(advice), lambda: advice_tables(advice, settings))
    if advice.without_advice:
        raise typer.Exit(ExitCode.UNAVAILABLE)
