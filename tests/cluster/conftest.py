"""The control plane with nodes, and who may read what of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from uuid import uuid4

import pytest
import yaml

from tests.cluster.story import nodes_of, serve_kinds
from tests.docs.markdown_pages import DOCS, blocks
from tests.servers.control_plane import ControlPlane
from tests.servers.kube_api import KubeApi, Object
from tests.servers.kubelet import Kubelet

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def grant(api: KubeApi, user: str, rules: Sequence[Mapping[str, object]]) -> None:
    """Give ``user`` the rights of ``rules`` everywhere, beside those it has."""
    name = f"{user}-{uuid4().hex[:8]}"
    api.create(f"{_RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    api.create(f"{_RBAC}/clusterrolebindings", binding)


@pytest.fixture(scope="session")
def bench(control_plane: ControlPlane) -> ControlPlane:
    """It with nodes of every kind; ``reader`` may read what the guide says, and no more."""
    (role,) = (
        yaml.safe_load(block.body)
        for block in blocks((DOCS / "reference" / "kubernetes.md").read_text(encoding="utf-8"))
        if block.info == "yaml"
    )
    with closing(control_plane.api()) as api:
        serve_kinds(api)
        nodes_of(Kubelet(api))
        grant(api, "reader", role["rules"])
    return control_plane


@pytest.fixture
def api(bench: ControlPlane) -> Iterator[KubeApi]:
    with closing(bench.api()) as found:
        yield found


@pytest.fixture
def namespace(bench: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own, of which no pod and no Job stays."""
    name = f"test-{uuid4().hex[:8]}"
    with closing(bench.api()) as api:
        api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    # It may have been restarted meanwhile.
    with closing(bench.api()) as api:
        for collection in (f"/apis/batch/v1/namespaces/{name}/jobs", f"/api/v1/namespaces/{name}/pods"):
            api.delete(collection, grace_seconds=0)
            api.until(collection, lambda found: not found)


def a_waiting_pod(name: str) -> Object:
    """A pod that asks for a GPU and that no scheduler looks at."""
    box = {"name": "main", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [box], "schedulingGates": [{"name": "test.invalid/hold"}]},
    }
