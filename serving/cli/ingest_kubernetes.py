"""``gsa ingest kubernetes``: history from what a cluster still knows."""

from __future__ import annotations

from pathlib import Path
from random import random
from time import sleep
from typing import Annotated

import typer

from advisor.clock import SystemClock
from advisor.cluster.reflector import Pace
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from advisor.telemetry.collector import collect
from advisor.telemetry.kubernetes.source import KubernetesSource
from serving.cli.collected import document, stage_of, tables
from serving.cli.ingest_tables import start_tables
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, render, stages

__all__ = ["kubernetes"]

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="Kubeconfig file; without one the pod's service account, then kubectl's default.",
        show_default=False,
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", help="Context of the kubeconfig; its current one by default.", show_default=False),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="What the cluster is called in the history; as in the kubeconfig by default. Never change it.",
        show_default=False,
    ),
]


def kubernetes(
    *,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Read what a cluster's API server still knows of its pods and Jobs; also how long its nodes took to start."""
    from advisor.cluster.kubernetes import KubernetesObjects  # noqa: PLC0415 - the client alone loads longer than the rest

    del debug
    settings = load_settings(config)
    clock = SystemClock()
    reader = KubernetesObjects.connect(kubeconfig, context)
    pace = Pace(clock, sleep, random)
    with stages("ingest") as told, HistoryStore.open(settings.storage.history) as store:
        source = KubernetesSource(reader, pace, settings.telemetry.user_labels, name=name)
        told("reading pods, what made them, and nodes", 0, 0)
        done = collect(source, store, clock.now(), stage_of(told, "storing jobs"))
    starts = source.start_latencies()
    whole = {**document(done), "start_latency": [each.document() for each in starts]}
    render(output, whole, lambda: [*tables(done), *start_tables(starts)])
