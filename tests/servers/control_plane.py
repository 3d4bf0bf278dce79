"""A real control plane on loopback: etcd, API server, controller manager and scheduler as plain processes.

There are no machines and no kubelets: a test makes nodes and plays their kubelet (:mod:`tests.servers.kubelet`). Tests
that use it are marked ``cluster``, keep to a namespace of their own, and may kill, hold and restart its processes.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.servers.kube_api import KubeApi
from tests.servers.processes import ServerProcess, free_port
from tests.servers.programs.build import CLUSTER, PROGRAMS

__all__ = ["ControlPlane", "control_plane"]

_USERS = {"admin": "system:masters", "reader": "", "lister": "", "pods-only": "", "stranger": ""}
"""Whom it knows, and the group of each; all but the admin have the rights that a test gives them."""
_CALM = "24h"
"""Nobody reports for the nodes, and none of them is dead for that."""


class ControlPlane:
    """The four processes, their keys and data below ``folder``."""

    def __init__(self, folder: Path) -> None:
        """Make what they are started with."""
        self._folder = folder
        self._peer = free_port()
        (folder / "tokens.csv").write_text(
            "".join(f"token-of-{user},{user},{user},{group}\n" for user, group in _USERS.items()), encoding="utf-8"
        )
        _write_keys(folder)
        self.etcd = ServerProcess(self._etcd, "/health", folder / "etcd.log")
        self.api_server = self._process("kube-apiserver", "/readyz")
        self.controllers = self._process("kube-controller-manager", "/healthz")
        self.scheduler = self._process("kube-scheduler", "/healthz")

    def start(self) -> None:
        """Start them in the order in which they need each other."""
        for each in (self.etcd, self.api_server, self.controllers, self.scheduler):
            each.start()

    def stop(self) -> None:
        """End them. An API server that is asked to waits for its watches for a minute."""
        for each in (self.scheduler, self.controllers, self.api_server, self.etcd):
            each.stop(at_once=True)

    def kubeconfig(self, user: str = "admin") -> Path:
        """A kubeconfig that leads to it as ``user``; the cluster is called ``bench``."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [
                {
                    "name": "bench",
                    "cluster": {"server": self.api_server.url, "certificate-authority": str(self._certificate)},
                }
            ],
            "users": [{"name": user, "user": {"token": f"token-of-{user}"}}],
            "contexts": [{"name": "here", "context": {"cluster": "bench", "user": user}}],
        }
        file = self._folder / f"kubeconfig-{user}"
        file.write_text(json.dumps(document), encoding="utf-8")
        return file

    def api(self, user: str = "admin") -> KubeApi:
        """It, as ``user`` speaks to it."""
        return KubeApi(self.api_server.url, f"token-of-{user}", self._certificate)

    def forget_the_past(self) -> None:
        """Let etcd keep nothing but what is there now."""
        with httpx.Client(base_url=self.etcd.url, trust_env=False) as client:
            key = base64.b64encode(b"/").decode()
            now = client.post("/v3/kv/range", json={"key": key}).raise_for_status().json()["header"]["revision"]
            client.post("/v3/kv/compaction", json={"revision": now, "physical": True}).raise_for_status()

    def logs(self) -> str:
        """The end of every process's log."""
        return "\n".join(f"{file.name}\n{file.read_text()[-4000:]}" for file in sorted(self._folder.glob("*.log")))

    @property
    def _certificate(self) -> Path:
        return self._folder / "certificates" / "apiserver.crt"

    def _process(self, name: str, ready: str) -> ServerProcess:
        words = {
            "kube-apiserver": self._api_server,
            "kube-controller-manager": self._controllers,
            "kube-scheduler": self._scheduler,
        }
        return ServerProcess(words[name], ready, self._folder / f"{name}.log", scheme="https")

    def _etcd(self, port: int) -> list[str]:
        own, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{self._peer}"
        return [
            str(PROGRAMS["etcd"].path),
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={own}",
            f"--advertise-client-urls={own}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            # As clusters have it (5 s there): without it a kind in which nothing happens stays at its old version.
            "--watch-progress-notify-interval=1s",
            "--log-level=warn",
        ]

    def _api_server(self, port: int) -> list[str]:
        key = self._folder / "accounts"
        return [
            str(PROGRAMS["kube-apiserver"].path),
            f"--etcd-servers={self.etcd.url}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self._folder / 'certificates'}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://bench.invalid",
            f"--service-account-key-file={key}.pub",
            f"--service-account-signing-key-file={key}.key",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Pods of tests have no use for tokens, and need not wait for an account.
            "--disable-admission-plugins=ServiceAccount",
        ]

    def _controllers(self, port: int) -> list[str]:
        return [
            str(PROGRAMS["kube-controller-manager"].path),
            f"--kubeconfig={self.kubeconfig()}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            f"--service-account-private-key-file={self._folder / 'accounts.key'}",
            f"--node-monitor-grace-period={_CALM}",
        ]

    def _scheduler(self, port: int) -> list[str]:
        file = self.kubeconfig()
        return [
            str(PROGRAMS["kube-scheduler"].path),
            f"--kubeconfig={file}",
            f"--authentication-kubeconfig={file}",
            f"--authorization-kubeconfig={file}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
        ]


def _write_keys(folder: Path) -> None:
    """The pair that tokens of service accounts are signed with."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "accounts.key").write_bytes(private)
    (folder / "accounts.pub").write_bytes(public)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running control plane for all tests; skipped where it was not built, but not where CI promises it."""
    missing = [name for name in CLUSTER if not PROGRAMS[name].path.exists()]
    if missing:
        message = f"{', '.join(missing)} not built: make test-cluster builds them, with Go"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    plane = ControlPlane(tmp_path_factory.mktemp("cluster"))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs beside a test that failed with it."""
    report = yield
    if report.failed:
        # Several fixtures may hand on the same one.
        planes = {
            id(value): value for value in getattr(item, "funcargs", {}).values() if isinstance(value, ControlPlane)
        }
        report.sections += [("logs of the control plane", plane.logs()) for plane in planes.values()]
    return report
