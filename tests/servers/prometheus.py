"""Real metrics servers that hold samples of a test: Debian's Prometheus, and VictoriaMetrics.

Both fixtures answer ``load(lines or path)``: OpenMetrics text with times in seconds, sorted by time within a family.
A line is ``name{label="value"} 1.5 1767225600``; ``# TYPE`` and ``# EOF`` are added to lines, a file is taken as it is.
Tests that use them are marked ``prometheus``.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.servers.processes import ServerProcess, binary

__all__ = ["MetricsServers", "PrometheusServers", "VictoriaServers", "prometheus_servers", "victoria_servers"]

_NAME = re.compile(r"[^{\s]+")
_LOAD_SECONDS = 900.0
_BLOCK = 100_000


class MetricsServers:
    """Starts servers, one for each set of samples, and ends them all."""

    def __init__(self, folder: Path) -> None:
        """Keep everything below ``folder``."""
        self._folder = folder
        self._servers: list[ServerProcess] = []

    def load(self, samples: Iterable[str] | Path, *flags: str) -> ServerProcess:
        """A running server that holds ``samples``, started with its own ``flags`` too."""
        return self._serving(samples, Path(tempfile.mkdtemp(dir=self._folder)), flags)

    def _serving(self, samples: Iterable[str] | Path, home: Path, flags: tuple[str, ...]) -> ServerProcess:
        raise NotImplementedError

    def _start(self, server: ServerProcess) -> ServerProcess:
        self._servers.append(server)
        server.start()
        return server

    def stop(self) -> None:
        """End every server."""
        for server in self._servers:
            server.stop()

    def logs(self) -> str:
        """The end of every server's log."""
        return "\n".join(f"{server.url}\n{server.log()}" for server in self._servers)


class PrometheusServers(MetricsServers):
    """Prometheus, its blocks made by promtool before it starts."""

    def __init__(self, folder: Path) -> None:
        """Keep everything below ``folder``."""
        super().__init__(folder)
        self._homes: dict[ServerProcess, Path] = {}

    def _serving(self, samples: Iterable[str] | Path, home: Path, flags: tuple[str, ...]) -> ServerProcess:
        program = binary("prometheus", "prometheus")
        (home / "prometheus.yml").write_text("{}\n", encoding="utf-8")
        (home / "data").mkdir()
        _blocks_made(samples, home)

        def command(port: int) -> list[str]:
            return [
                program,
                f"--config.file={home / 'prometheus.yml'}",
                f"--storage.tsdb.path={home / 'data'}",
                "--storage.tsdb.retention.time=50y",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
                *flags,
            ]

        server = ServerProcess(command, "/-/ready", home / "log")
        self._homes[server] = home
        return self._start(server)

    def grow(self, server: ServerProcess, samples: Iterable[str] | Path) -> None:
        """Give a server that has been stopped more ``samples``, which it has when it is started again."""
        assert not server.running, "blocks are found at the start"
        _blocks_made(samples, self._homes[server])


class VictoriaServers(MetricsServers):
    """VictoriaMetrics, which takes samples while it runs and much faster."""

    def _serving(self, samples: Iterable[str] | Path, home: Path, flags: tuple[str, ...]) -> ServerProcess:
        program = binary("victoria-metrics", "victoria-metrics")

        def command(port: int) -> list[str]:
            return [
                program,
                f"-storageDataPath={home / 'data'}",
                "-retentionPeriod=50y",
                f"-httpListenAddr=127.0.0.1:{port}",
                "-search.latencyOffset=0s",
                "-memory.allowedPercent=10",
                "-loggerLevel=WARN",
                *flags,
            ]

        server = self._start(ServerProcess(command, "/health", home / "log"))
        with httpx.Client(base_url=server.url, trust_env=False, timeout=_LOAD_SECONDS) as client:
            for block in _blocks(_in_milliseconds(samples)):
                client.post("/api/v1/import/prometheus", content=block).raise_for_status()
            # What was imported is searched only once it was flushed.
            client.get("/internal/force_flush").raise_for_status()
        return server


def _blocks_made(samples: Iterable[str] | Path, home: Path) -> None:
    """Blocks of ``samples`` beside those that are there."""
    file = samples if isinstance(samples, Path) else _written(samples, home / "samples.om")
    # promtool reads the whole file once for each block: long blocks, few readings.
    tool = [binary("promtool", "prometheus"), "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=1458h"]
    made = subprocess.run(
        [*tool, "--quiet", str(file), str(home / "data")],
        capture_output=True,
        text=True,
        check=False,
        timeout=_LOAD_SECONDS,
    )
    assert made.returncode == 0, f"promtool cannot load the samples:\n{made.stdout}{made.stderr}"


def _written(lines: Iterable[str], file: Path) -> Path:
    """``lines`` as a file that promtool takes."""
    typed: set[str] = set()
    with file.open("w", encoding="utf-8") as out:
        for line in lines:
            text = line.rstrip("\n")
            if text == "# EOF" or not text:
                continue
            if text.startswith("# TYPE "):
                typed.add(text.split()[2])
            elif not text.startswith("#") and (name := _name(text)) not in typed:
                typed.add(name)
                # Unknown takes any suffix, where a gauge may not end in _total.
                out.write(f"# TYPE {name} unknown\n")
            out.write(f"{text}\n")
        out.write("# EOF\n")
    return file


def _name(line: str) -> str:
    found = _NAME.match(line)
    assert found is not None, f"no sample: {line!r}"
    return found[0]


def _in_milliseconds(samples: Iterable[str] | Path) -> Iterator[str]:
    """Each sample's line with its time in milliseconds, as VictoriaMetrics has it."""
    if isinstance(samples, Path):
        with samples.open(encoding="utf-8") as lines:
            yield from _in_milliseconds(lines)
        return
    for line in samples:
        if line.strip() and not line.startswith("#"):
            sample, seconds = line.rstrip("\n").rsplit(" ", 1)
            yield f"{sample} {round(float(seconds) * 1000)}\n"


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == _BLOCK:
            yield "".join(block).encode()
            block.clear()
    if block:
        yield "".join(block).encode()


@pytest.fixture(scope="session")
def prometheus_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServers]:
    """Real Prometheus servers; skipped where none is installed."""
    binary("prometheus", "prometheus")
    servers = PrometheusServers(tmp_path_factory.mktemp("prometheus"))
    try:
        yield servers
    finally:
        servers.stop()


@pytest.fixture(scope="session")
def victoria_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VictoriaServers]:
    """Real VictoriaMetrics servers; skipped where none is installed."""
    binary("victoria-metrics", "victoria-metrics")
    servers = VictoriaServers(tmp_path_factory.mktemp("victoria"))
    try:
        yield servers
    finally:
        servers.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the servers' logs beside a test that failed with them."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, MetricsServers):
                report.sections.append((f"log of {name}", value.logs()))
    return report
