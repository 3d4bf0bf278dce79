"""``gsa serve``: the API and the dashboard, with the advice cycle running beside them."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from types import FrameType
from typing import Annotated

import typer
import uvicorn
from fastapi import FastAPI

from advisor.clock import SystemClock
from advisor.history.store import HistoryStore
from advisor.settings import Settings, load_settings
from serving.app import create_app
from serving.bind import listening, server_config, url_of
from serving.cli.advise import ClusterOption, FileOption, NodeGpusOption
from serving.cli.alone import home_shared
from serving.cli.options import AsOfOption, ConfigOption, DebugOption, moment_of
from serving.cli.output import printer
from serving.controller import ControllerLoop
from serving.live import LiveAdvisor, LiveParts
from serving.logs import set_up_logs
from serving.wiring import ClusterChoice, ClusterKind, open_history, open_registry

__all__ = ["HostOption", "PortOption", "app", "at_address", "leave_on_sigterm", "live_from", "looks", "serve_live"]

app = typer.Typer(add_completion=False, help="API and dashboard.")

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LEAST_WAIT_SECONDS = 1.0
_RETRY_SECONDS = 10.0

HostOption = Annotated[
    str | None, typer.Option("--host", help="Address to listen on; only loopback is allowed.", show_default=False)
]
PortOption = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help="TCP port; 8080 by default.", show_default=False)
]


class _Server(uvicorn.Server):
    """Stops on SIGINT and SIGTERM and then returns, so that what was opened is closed and the exit code is 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's own, which however raises the signal once more when the server has stopped."""
        before = {number: signal.signal(number, self.handle_exit) for number in _STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def leave_on_sigterm() -> None:
    """End with 0 when asked to stop before the server listens."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise SystemExit(0)


@app.command()
def serve(
    host: HostOption = None,
    port: PortOption = None,
    cluster: ClusterOption = ClusterKind.MEMORY,
    cluster_file: FileOption = None,
    node_gpus: NodeGpusOption = 8,
    as_of: AsOfOption = None,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Serve predictions, advice and the dashboard until interrupted.

    Ends at once with 3 if the port is taken, and with 4 while a demo is filling the home.
    """
    del debug
    set_up_logs(routine=True)
    leave_on_sigterm()
    settings = at_address(load_settings(config), host, port)
    choice = ClusterChoice(kind=cluster, file=cluster_file, node_gpus=node_gpus)
    with (
        listening(settings.server.host, settings.server.port) as sockets,
        home_shared(settings.storage.home, "gsa serve"),
        open_history(settings) as history,
    ):
        serve_live(settings, live_from(settings, choice, history, moment_of(as_of)), sockets)


def at_address(settings: Settings, host: str | None, port: int | None) -> Settings:
    """The settings with another address, where one is given."""
    server = settings.server
    update = {"host": host or server.host, "port": port or server.port}
    return settings.model_copy(update={"server": server.model_copy(update=update)})


def live_from(settings: Settings, choice: ClusterChoice, history: HistoryStore, as_of: datetime | None) -> LiveAdvisor:
    """The live advisor of a server, on an open history."""
    parts = LiveParts(
        settings=settings,
        history=history,
        registry=open_registry(settings),
        clock=SystemClock(),
        cluster=choice,
        as_of=as_of,
        continuous=True,
    )
    return LiveAdvisor(parts)


def serve_live(settings: Settings, live: LiveAdvisor, sockets: Sequence[socket.socket]) -> None:
    """Say where, and answer on listening ``sockets`` until interrupted.

    Until the first cycle has finished the server answers that it is not ready.
    """
    address = settings.server
    cycles = ControllerLoop(live.refresh)
    looking = looks(live, cycles, address.take_in_seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        cycles.start()
        looking.start()
        yield
        looking.stop()
        cycles.stop()

    stale = settings.guards.stale_after_minutes
    made = create_app(live, live, address, sources=live.sources, stale_after_minutes=stale, lifespan=lifespan)
    server = _Server(server_config(made, address.host, address.port))
    printer().print(f"dashboard and API on {url_of(address.host, address.port)} (stop with Ctrl-C)")
    server.run(list(sockets))


def looks(live: LiveAdvisor, cycles: ControllerLoop, seconds: float) -> ControllerLoop:
    """Takes in what is new every so many seconds, without waiting for a cycle; asks for one where it cannot."""

    def look() -> float:
        if not live.take_in():
            cycles.hurry()
        return seconds

    least = min(seconds, _LEAST_WAIT_SECONDS)
    return ControllerLoop(look, _RETRY_SECONDS, name="taking-in", least_wait_seconds=least)
