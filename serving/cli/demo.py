"""``gsa demo``: the whole product in one command, on a trace or on a labelled synthetic workload."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from advisor.domain.ingest import JobBatch
from advisor.errors import Refused
from advisor.history.store import HistoryStore
from advisor.settings import Settings, load_settings
from advisor.telemetry.mapping import read_mapping
from advisor.telemetry.synthetic import synthetic_workload
from advisor.telemetry.traces import TraceFile, TraceFormat
from serving.bind import listening
from serving.cli.advise import NodeGpusOption
from serving.cli.advise_tables import advice_tables
from serving.cli.alone import home_alone
from serving.cli.options import ConfigOption, DebugOption
from serving.cli.output import kept_in, phase, progress_bar, show
from serving.cli.serve import HostOption, PortOption, at_address, leave_on_sigterm, live_from, serve_live
from serving.cli.training import run_tables, train_on
from serving.logs import set_up_logs
from serving.wiring import ClusterChoice, open_history

__all__ = ["app"]

app = typer.Typer(add_completion=False, help="The whole product in one command: learn from a trace, advise, serve.")

_SEED = 1
_SPLIT = 0.7

DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Trace file; without one a labelled synthetic workload is made.", show_default=False),
]
FormatOption = Annotated[TraceFormat, typer.Option("--format", help="Layout of the trace.")]
MappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="TOML file naming the columns; for --format table.", show_default=False)
]


@app.command()
def demo(
    data: DataOption = None,
    trace_format: FormatOption = TraceFormat.TABLE,
    mapping: MappingOption = None,
    serve: Annotated[bool, typer.Option("--serve/--no-serve", help="Serve API and dashboard afterwards.")] = True,
    host: HostOption = None,
    port: PortOption = None,
    node_gpus: NodeGpusOption = 8,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Ingest, train, print the advice, then serve it until interrupted.

    Everything is kept in a folder of its own below the settings' home, one for each trace, so that a
    synthetic workload never mixes with a real history. Ends at once with 3 if the port is taken, and with
    4 if that folder is being served already.
    """
    del debug
    set_up_logs()
    leave_on_sigterm()
    settings = at_address(_home_for(load_settings(config), data, trace_format), host, port)
    with ExitStack() as stack:
        sockets: Sequence[socket.socket] = ()
        if serve:
            # Taken before the training: nobody waits a minute to be told that the port is not free.
            sockets = stack.enter_context(listening(settings.server.host, settings.server.port))
        home = stack.enter_context(home_alone(settings.storage.home, "gsa demo"))
        store = stack.enter_context(open_history(settings))
        _ingest(store, data, trace_format, mapping)
        show(run_tables(train_on(settings, store, _SPLIT)))
        live = live_from(settings, ClusterChoice(node_gpus=node_gpus), store, None)
        with phase("advise", "replaying the history, forecasting and planning"):
            live.refresh()
        show([*advice_tables(live.advice(), settings, manifests=False), kept_in(settings.storage.home)])
        if serve:
            home.share()
            serve_live(settings, live, sockets)


def _home_for(settings: Settings, data: Path | None, trace_format: TraceFormat) -> Settings:
    name = "synthetic"
    if data is not None:
        if not data.is_file():
            raise Refused("--data", str(data), "there is no such file", "Check the path.")
        name = f"{trace_format}-{hashlib.sha256(str(data.resolve()).encode()).hexdigest()[:8]}"
    storage = settings.storage.model_copy(update={"home": settings.storage.home / "demo" / name})
    return settings.model_copy(update={"storage": storage})


def _ingest(store: HistoryStore, data: Path | None, trace_format: TraceFormat, mapping: Path | None) -> None:
    now = datetime.now(UTC)
    with progress_bar("ingest") as step:
        store.append(_batch(data, trace_format, mapping, now, store), now, step)


def _batch(
    data: Path | None, trace_format: TraceFormat, mapping: Path | None, now: datetime, store: HistoryStore
) -> JobBatch:
    if data is not None:
        columns = None if mapping is None else read_mapping(mapping)
        return TraceFile(data, trace_format, columns).read(None, now)
    # Made once: a second run goes on with the workload of the first.
    end = store.watermark("synthetic") or now.replace(minute=0, second=0, microsecond=0)
    return synthetic_workload(_SEED, end)
