"""``gsa collect``: the history kept current from a metrics server, a cluster, or both."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import random
from time import sleep
from types import FrameType
from typing import Annotated

import structlog
import typer
from prometheus_client import CollectorRegistry, start_http_server

from advisor.clock import SystemClock
from advisor.cluster.reflector import Pace
from advisor.domain.units import parse_duration, positive
from advisor.errors import Refused, Transient
from advisor.history.store import HistoryStore, ReadOnlyStore
from advisor.settings import Settings, load_settings
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.kubernetes.source import KubernetesSource
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusTurns
from advisor.telemetry.source import Source
from serving.cli.alone import home_shared
from serving.cli.collected import document, tables
from serving.cli.ingest_kubernetes import ContextOption, KubeconfigOption, NameOption
from serving.cli.options import ConfigOption, DebugOption, OutputOption, metrics_options
from serving.cli.output import Output, render
from serving.collecting import CollectLoop, Rhythm, StartsAlone
from serving.ingest_metrics import IngestCollector
from serving.logs import set_up_logs
from serving.wiring import open_history

__all__ = ["app"]

app = typer.Typer(add_completion=False, help="History from live systems, kept current.")

_log = structlog.get_logger(__name__)

PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus", help="Address of the metrics server; else prometheus.url of the settings.", show_default=False
    ),
]
KubernetesOption = Annotated[
    bool, typer.Option("--kubernetes", help="Read the cluster; beside a metrics server only its start latency.")
]
EveryOption = Annotated[str, typer.Option("--every", help="Time from one turn to the next, as 90s, 5m or 1h.")]
OnceOption = Annotated[bool, typer.Option("--once", help="Take one turn, print what came of it, and leave.")]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", min=1, max=65535, help="Also answer metrics on this port of loopback.", show_default=False
    ),
]


@app.command()
def collect(
    *,
    prometheus: PrometheusOption = None,
    kubernetes: KubernetesOption = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    every: EveryOption = "5m",
    once: OnceOption = False,
    metrics_port: MetricsPortOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Read live systems into the store turn after turn, until interrupted; gsa serve may run beside it.

    Whatever cannot be reached is tried again; a store that may only be read is told at once, with exit code 4.
    A signal lets a turn under way end and then leaves with 0.
    """
    del debug
    set_up_logs(routine=True)
    settings = load_settings(config)
    seconds = positive(parse_duration(every, "--every"), "--every", "seconds")
    stopping = _asked_to_stop()
    rhythm = Rhythm(every_seconds=seconds, clock=SystemClock(), wait=stopping.wait, chance=random)
    cluster = _cluster(settings, (kubeconfig, context, name)) if kubernetes else None
    sources = _sources(settings, prometheus, cluster)
    with (
        home_shared(settings.storage.home, "gsa collect"),
        open_history(settings) if once else _opened(settings, rhythm) as store,
    ):
        loops = [CollectLoop(source, store, rhythm) for source in sources]
        if once:
            done = [loop.turn() for loop in loops]
            whole = {"collected": [document(each) for each in done]}
            render(output, whole, lambda: [part for each in done for part in tables(each)])
            return
        if metrics_port is not None:
            _answer_metrics(metrics_port, store)
        _run(loops)


def _asked_to_stop() -> threading.Event:
    """Set by the first signal; a second one ends the process at once."""
    stopping = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stopping.is_set():
            raise SystemExit(0)
        stopping.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, ask)
    return stopping


def _cluster(settings: Settings, where: tuple[Path | None, str | None, str | None]) -> KubernetesSource:
    from advisor.cluster.kubernetes import KubernetesObjects  # noqa: PLC0415 - the client alone loads longer than the rest

    kubeconfig, context, name = where
    reader = KubernetesObjects.connect(kubeconfig, context)
    return KubernetesSource(reader, Pace(SystemClock(), sleep, random), settings.telemetry.user_labels, name=name)


def _sources(settings: Settings, prometheus: str | None, cluster: KubernetesSource | None) -> Sequence[Source]:
    """What to collect from. A metrics server in the settings counts unless the cluster alone is asked for."""
    if prometheus is None and cluster is not None:
        return (cluster,)
    options = metrics_options(settings, "--prometheus", url=prometheus)
    if options.url is None:
        remedy = "Give --prometheus URL, --kubernetes or both, or set prometheus.url."
        raise Refused("gsa collect", None, "there is nothing to collect from", remedy)
    # What the options say of files and addresses is checked now; later it would only be logged.
    PrometheusClient(options).close()
    source = PrometheusTurns.of(options, settings.telemetry.user_labels, Pins.of(settings.dcgm))
    return (source,) if cluster is None else (source, StartsAlone(cluster))


def _writable(settings: Settings) -> HistoryStore:
    store = open_history(settings)
    try:
        store.check_writable()
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def _opened(settings: Settings, rhythm: Rhythm) -> Iterator[HistoryStore]:
    """The history, waited for where it cannot be opened yet; leaves with 0 when asked to stop meanwhile.

    Raises:
        ReadOnlyStore: it may only be read, which no waiting mends.
    """
    failures = 0
    while True:
        try:
            store = _writable(settings)
        except ReadOnlyStore:
            raise
        except Transient as error:
            failures += 1
            pause = rhythm.retry_seconds(failures)
            _log.warning("history_not_opened", reason=str(error), again_in_seconds=round(pause, 1))
            if rhythm.wait(pause):
                raise SystemExit(0) from None
        else:
            break
    with store:
        yield store


def _answer_metrics(port: int, store: HistoryStore) -> None:
    registry = CollectorRegistry()
    registry.register(IngestCollector(store.status))
    try:
        start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        limit = f"it cannot be listened on: {error.strerror}"
        raise Refused("--metrics-port", port, limit, "Choose another port.") from error


_HEARD_WITHIN_SECONDS = 0.5


def _run(loops: Sequence[CollectLoop]) -> None:
    """Each loop in a thread of its own, since one that is followed must not wait for another's long reading."""
    threads = [threading.Thread(target=loop.run, name="collecting", daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        # The system may hand a signal to any thread, and its handler runs when this one next wakes.
        while thread.is_alive():
            thread.join(_HEARD_WITHIN_SECONDS)
