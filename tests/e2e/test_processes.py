"""What goes wrong around real processes: killed, doubled, robbed of their files, or given nothing to learn."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.registry import DURATIONS, ModelRegistry
from advisor.history.store import HistoryStore
from serving.cli.root import app
from tests.builders import NOON, a_job
from tests.processes import environment, gsa, started

MINUTE = timedelta(minutes=1)
DONE, GATE = 0, 5
REFUSED, UNAVAILABLE = 3, 4


def some_jobs(count: int = 240) -> list[Job]:
    """Two users whose jobs last ten minutes and two hours, give or take; one job every ten minutes."""
    return [
        a_job(
            id=f"job-{n}",
            user=("ada", "bob")[n % 2],
            submit=(submit := NOON + 10 * n * MINUTE),
            start=submit,
            end=submit + ((10, 120)[n % 2] + n % 7) * MINUTE,
        )
        for n in range(count)
    ]


def filled(home: Path, jobs: list[Job]) -> Path:
    """A home that holds these jobs and nothing else."""
    home.mkdir(parents=True, exist_ok=True)
    with HistoryStore.open(f"sqlite:///{home / 'history.db'}") as store:
        store.append(JobBatch(source="test", jobs=tuple(jobs)), NOON + timedelta(days=30))
    return home


def registry_of(home: Path) -> ModelRegistry:
    return ModelRegistry.open(f"sqlite:///{home / 'registry.db'}", (home / "artifacts").as_uri())


def champion_of(home: Path) -> str:
    champion = registry_of(home).champion_version(DURATIONS)
    assert champion is not None
    return champion


def version_in(result: subprocess.CompletedProcess[str]) -> str:
    """The version of the duration model that a training says it registered."""
    return str({one["name"]: one["version"] for one in json.loads(result.stdout)["models"]}[DURATIONS])


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a champion, shared: every test leaves it with a champion and whole."""
    home = filled(tmp_path_factory.mktemp("processes") / "home", some_jobs())
    result = gsa(home, "train", "--output", "json")
    assert result.returncode in {DONE, GATE}, result.stderr
    registry_of(home).promote(DURATIONS, version_in(result))
    return home


@pytest.fixture
def training(fitted: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A training under way; its scratch files lie in ``tmp_path``."""
    with started(fitted, "train", TMPDIR=str(tmp_path)) as process:
        yield process
        process.kill()


def wait_until(seen: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Look again every few milliseconds for as long as the process lives."""
    while not seen():
        try:
            process.wait(0.005)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"the process ended with {process.returncode} before it got there")


@pytest.mark.parametrize("where", ["while it saves", "while it registers"])
def test_a_killed_training_leaves_registry_and_champion_whole(
    where: str, fitted: Path, training: subprocess.Popen[str], tmp_path: Path
) -> None:
    champion, artifacts = champion_of(fitted), fitted / "artifacts"
    before = set(artifacts.iterdir())
    reached = {
        "while it saves": lambda: any(tmp_path.glob("gsa-model-*/durations")),
        "while it registers": lambda: bool(set(artifacts.iterdir()) - before),
    }

    wait_until(reached[where], training)
    training.send_signal(signal.SIGKILL)
    training.wait()

    assert champion_of(fitted) == champion
    for version in registry_of(fitted).versions(DURATIONS):
        DurationModel.load(version.folder)
    assert len(registry_of(fitted).versions(DURATIONS)) == len(registry_of(fitted)._known(DURATIONS))
    again = gsa(fitted, "train", "--output", "json")
    assert again.returncode in {DONE, GATE}, again.stderr
    newest = registry_of(fitted).versions(DURATIONS)[0]
    assert newest.version == version_in(again)
    DurationModel.load(newest.folder)
    for folder in (path for path in artifacts.rglob(DURATIONS) if path.is_dir()):
        DurationModel.load(folder)  # nothing half-written stays


def test_of_two_trainings_at_once_the_second_leaves_and_says_why(fitted: Path, training: subprocess.Popen[str]) -> None:
    lock = fitted / "training.lock"
    wait_until(lambda: lock.read_text(encoding="utf-8").strip() == str(training.pid), training)
    training.send_signal(signal.SIGSTOP)
    versions = len(registry_of(fitted)._known(DURATIONS))
    try:
        second = gsa(fitted, "train")
    finally:
        training.send_signal(signal.SIGCONT)

    assert second.returncode == UNAVAILABLE
    assert f"another training runs on {fitted} (process {training.pid}); wait" in second.stderr
    assert training.wait() in {DONE, GATE}
    assert len(registry_of(fitted)._known(DURATIONS)) == versions + 1
    assert champion_of(fitted)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers_when_ready(port: int, process: subprocess.Popen[str], path: str) -> Any:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:

        def ready() -> bool:
            try:
                return client.get("/readyz").status_code == 200
            except httpx.TransportError:
                return False

        wait_until(ready, process)
        return client.get(path).json()


def test_a_registry_that_is_gone_is_told_with_the_remedy_and_baselines_serve(fitted: Path, tmp_path: Path) -> None:
    home = shutil.copytree(fitted, tmp_path / "home", ignore=shutil.ignore_patterns("registry.db*", "artifacts"))
    port = free_port()

    with started(home, "serve", "--port", str(port)) as server:
        advice = answers_when_ready(port, server, "/v1/recommendations")
        server.terminate()

    assert server.returncode == DONE
    assert advice["models"] == {"durations": None, "demand": None}
    assert any(
        "no version of durations has been promoted" in each and "gsa train" in each for each in advice["reasons"]
    )


def unprivileged() -> tuple[str, ...]:
    """What makes permissions count: root passes them by unless it gives up its capabilities."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("run by root, and without setpriv (util-linux) permissions bind nobody")
    return (setpriv, "--bounding-set=-all", "--inh-caps=-all")


@pytest.mark.parametrize("command", [("train",), ("advise",), ("collect", "--prometheus", "http://127.0.0.1:9")])
def test_a_read_only_home_is_named_with_the_remedy(command: tuple[str, ...], fitted: Path, tmp_path: Path) -> None:
    home = shutil.copytree(fitted, tmp_path / "home", ignore=shutil.ignore_patterns("artifacts"))
    for path in (*home.rglob("*"), home):
        path.chmod(path.stat().st_mode & ~0o222)

    result = gsa(home, *command, under=unprivileged())

    home.chmod(0o755)
    assert result.returncode == UNAVAILABLE
    assert f"{home}/history.db cannot be written" in result.stderr
    assert "Let this user write the file and its folder" in result.stderr
    assert result.stdout == ""


def test_a_store_elsewhere_does_not_make_a_read_only_home_writable(fitted: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o555)

    result = gsa(home, "train", under=unprivileged(), GSA_STORAGE__HISTORY_URL=f"sqlite:///{fitted / 'history.db'}")

    assert result.returncode == REFUSED
    assert f"storage.home: '{home}' is refused; the folder cannot be written" in result.stderr
    assert "GSA_STORAGE__HOME" in result.stderr


def test_kubernetes_without_a_kubeconfig_is_refused_with_the_remedy(fitted: Path, tmp_path: Path) -> None:
    nowhere = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none"), "KUBERNETES_SERVICE_HOST": ""}

    result = gsa(fitted, "advise", "--cluster", "kubernetes", **nowhere)

    last = result.stderr.splitlines()[-1]
    assert result.returncode == REFUSED
    assert last.startswith("kubeconfig: ")
    assert last.endswith("Give one that kubectl takes.")
    assert ".." not in last
    assert result.stderr.count("kubectl takes") == 1, "told once"


def test_an_empty_history_is_told_once(fitted: Path, tmp_path: Path) -> None:
    result = gsa(fitted, "advise", GSA_STORAGE__HISTORY_URL=f"sqlite:///{tmp_path / 'empty.db'}")

    assert result.returncode == UNAVAILABLE
    assert result.stderr.splitlines()[-1] == "the history is empty; ingest one first (gsa ingest)"


@pytest.mark.parametrize("apart", [0 * MINUTE, 10 * MINUTE], ids=["at one moment", "ten minutes apart"])
def test_a_history_of_one_job_over_and_over_is_learned_from_and_advised_on(
    apart: timedelta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = [
        a_job(id=f"job-{n}", submit=(submit := NOON + n * apart), start=submit, end=submit + 10 * MINUTE)
        for n in range(90)
    ]
    for name, value in environment(filled(tmp_path / "home", alike), {}).items():
        monkeypatch.setenv(name, value)

    trained, advised = (CliRunner().invoke(app, [command, "--output", "json"]) for command in ("train", "advise"))

    assert trained.exit_code in {DONE, GATE}, trained.stderr
    assert advised.exit_code == DONE, advised.stderr
    [pool] = json.loads(advised.stdout)["pools"]
    assert pool["slice_lengths"][0]["reasons"]
    assert pool["warm_gpus"] >= 0
