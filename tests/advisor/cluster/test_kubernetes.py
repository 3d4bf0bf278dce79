"""The real client against a stand-in API server on loopback that answers with canned JSON."""

import json
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from kubernetes import client

from advisor.clock import ManualClock
from advisor.cluster.fields import CONSOLIDATE_AFTER, GPU_LIMIT
from advisor.cluster.kubernetes import KubernetesCluster, KubernetesObjects
from advisor.cluster.objects import Expired, NotServed, ObjectKind, WatchType
from advisor.cluster.port import PoolPatch
from advisor.cluster.reflector import Pace, Reflector
from advisor.domain.nodepools import Budget, Taint, WarmBuffer
from advisor.errors import Refused, Transient
from tests.api_server import StandIn, kubeconfig_of, listening
from tests.builders import NOON

POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/gpu-slice-advisor/capacitybuffers"
MAPS = "/api/v1/namespaces/gpu-slice-advisor/configmaps"
CREATED = "2026-03-02T11:00:00Z"


@pytest.fixture
def server() -> Iterator[StandIn]:
    lists: dict[str, list[dict]] = {path: [] for path in (POOLS, CLAIMS, NODES, PODS, BUFFERS, MAPS)}
    with listening(StandIn(lists)) as stand_in:
        yield stand_in


@pytest.fixture
def cluster(server) -> Iterator[KubernetesCluster]:
    settings = client.Configuration()
    settings.host, settings.retries = server.url, False
    with client.ApiClient(settings) as api:
        yield KubernetesCluster(api, ManualClock(NOON))


def a_nodepool(name: str = "gpu", **spec) -> dict:
    return {
        "metadata": {
            "name": name,
            "resourceVersion": "77",
            "managedFields": [
                {"manager": "argocd", "fieldsV1": {"f:spec": {"f:disruption": {"f:consolidateAfter": {}}}}},
                {"manager": "helm", "fieldsV1": {"f:spec": {"f:limits": {"f:nvidia.com/gpu": {}}, "f:template": {}}}},
            ],
        },
        "spec": {
            "disruption": {
                "consolidateAfter": "180s",
                "consolidationPolicy": "WhenEmpty",
                "budgets": [{"nodes": "10%"}, {"nodes": "0", "reasons": ["Empty"]}],
            },
            "limits": {"nvidia.com/gpu": 64, "cpu": "1000"},
            "weight": 10,
            "template": {
                "metadata": {"labels": {"team": "ml"}},
                "spec": {
                    "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
                    "requirements": [
                        {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["a100"]},
                        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "In", "values": ["8", "1"]},
                    ],
                },
            },
            **spec,
        },
    }


def a_k8s_node(name: str = "n1", *, pool: str = "gpu", gpus: str = "8", ready: str = "True", **more) -> dict:
    labels = {"karpenter.sh/nodepool": pool, **more.pop("labels", {})}
    return {
        "metadata": {"name": name, "labels": labels, "creationTimestamp": CREATED},
        "spec": more.pop("spec", {}),
        "status": {
            "capacity": {"nvidia.com/gpu": gpus, "cpu": "96"},
            "allocatable": {"nvidia.com/gpu": more.pop("allocatable", gpus)},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
        },
    }


def a_pod(name: str = "train", *, gpus: object = "4", node: str | None = "n1", **more) -> dict:
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}], **more.pop("spec", {})}
    if node is not None:
        spec["nodeName"] = node
    return {
        "metadata": {"namespace": "ml", "name": name, "creationTimestamp": CREATED, **more},
        "spec": spec,
        "status": {"phase": "Running", **({"startTime": "2026-03-02T11:05:00Z"} if node else {})},
    }


def a_claim(name: str = "claim", *, node: str | None = None, gpus: str = "8", **more) -> dict:
    return {
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "gpu"}, "creationTimestamp": CREATED, **more},
        "spec": {"resources": {"requests": {"nvidia.com/gpu": "1"}}},
        "status": {"capacity": {"nvidia.com/gpu": gpus}, **({"nodeName": node} if node else {})},
    }


def test_a_nodepool_is_read_with_its_owners(server, cluster):
    server.lists[POOLS] = [a_nodepool()]

    pool = cluster.observe().pool("gpu")

    assert pool.consolidate_after == "180s"
    assert pool.consolidation_policy == "WhenEmpty"
    assert pool.budgets == (Budget("10%"), Budget("0", ("Empty",)))
    assert pool.limits == {"nvidia.com/gpu": "64", "cpu": "1000"}
    assert (pool.node_gpus, pool.gpu_kind, pool.weight) == ((1, 8), "a100", 10)
    assert pool.taints == (Taint("nvidia.com/gpu", "NoSchedule", "true"),)
    assert pool.resource_version == "77"
    assert pool.field_managers == {CONSOLIDATE_AFTER: ("argocd",), GPU_LIMIT: ("helm",)}


def test_pools_without_any_hint_of_gpus_are_left_out(server, cluster):
    cpu = {"metadata": {"name": "cpu"}, "spec": {"disruption": {"consolidateAfter": "0s"}}}
    barred = {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"}
    no_gpu = {"metadata": {"name": "no-gpu"}, "spec": {"template": {"spec": {"requirements": [barred]}}}}
    server.lists[POOLS] = [cpu, a_nodepool(), no_gpu]

    assert [pool.name for pool in cluster.observe().pools] == ["gpu"]


def test_nodes_tell_what_a_pool_does_not(server, cluster):
    plain = {"metadata": {"name": "gpu"}, "spec": {"disruption": {"consolidateAfter": "0s"}}}
    server.lists[POOLS] = [plain]
    server.lists[NODES] = [a_k8s_node(gpus="4", labels={"nvidia.com/gpu.product": "L4"})]

    pool = cluster.observe().pool("gpu")

    assert (pool.node_gpus, pool.gpu_kind) == ((4,), "L4")


def test_an_unknown_node_size_is_assumed_and_said(server, cluster):
    server.lists[POOLS] = [a_nodepool(template={})]

    snapshot = cluster.observe()

    assert snapshot.pool("gpu").node_gpus == (8,)
    assert any("8 assumed" in note for note in snapshot.notes)


def test_a_node_is_ready_only_when_its_gpus_can_be_allocated(server, cluster):
    """Field report A04: Ready comes minutes before the device plugin."""
    server.lists[POOLS] = [a_nodepool()]
    server.lists[NODES] = [
        a_k8s_node("good"),
        a_k8s_node("late", gpus="0", labels={"karpenter.k8s.aws/instance-gpu-count": "8"}),
        a_k8s_node("plugin-down", allocatable="0"),
        a_k8s_node("not-ready", ready="False"),
        a_k8s_node("unregistered", spec={"taints": [{"key": "karpenter.sh/unregistered"}]}),
        a_k8s_node("cordoned", spec={"unschedulable": True}),
        a_k8s_node("leaving", spec={"taints": [{"key": "karpenter.sh/disrupted"}]}),
    ]

    nodes = cluster.observe().nodes

    assert [(node.name, node.gpus) for node in nodes if not node.ready] == [
        ("late", 8),
        ("plugin-down", 8),
        ("not-ready", 8),
        ("unregistered", 8),
    ]
    assert [node.name for node in nodes if node.cordoned] == ["cordoned", "leaving"]


def test_claims_without_a_node_are_nodes_to_come(server, cluster):
    server.lists[POOLS] = [a_nodepool()]
    server.lists[NODES] = [a_k8s_node("n1"), a_k8s_node("blank", gpus="0")]
    server.lists[CLAIMS] = [
        a_claim("c1", node="n1"),
        a_claim("c2", node="blank"),
        a_claim("c3"),
        a_claim("c4", gpus="0"),
        a_claim("c5", deletionTimestamp=CREATED),
    ]

    nodes = cluster.observe().nodes

    assert [(node.name, node.gpus, node.ready) for node in nodes] == [
        ("n1", 8, True),
        ("blank", 8, False),
        ("c3", 8, False),
    ]


def test_gpus_of_a_shared_node_are_physical(server, cluster):
    shared = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    server.lists[POOLS] = [a_nodepool()]
    server.lists[NODES] = [a_k8s_node(gpus="32", labels=shared)]
    server.lists[PODS] = [
        a_pod(gpus="2"),
        a_pod("waiting", gpus="1", node=None, spec={"nodeSelector": {"karpenter.sh/nodepool": "gpu"}}),
    ]

    snapshot = cluster.observe()

    assert snapshot.nodes[0].gpus == 8
    assert snapshot.pool("gpu").sharing_factor == 4
    assert [work.gpus for work in snapshot.workloads] == [0.5, 0.25]


def test_pods_that_ask_for_gpus_are_the_work(server, cluster):
    owner = [{"kind": "Job", "name": "train-llm"}]
    server.lists[POOLS] = [a_nodepool()]
    server.lists[NODES] = [a_k8s_node()]
    server.lists[PODS] = [
        a_pod(ownerReferences=owner),
        a_pod("web", spec={"containers": [{"resources": {"limits": {"cpu": "1"}}}]}),
        a_pod("waiting", node=None),
        a_pod("balloon", labels={"slice-advisor.io/owned": "true"}),
        a_pod("elsewhere", node="other"),
    ]

    snapshot = cluster.observe()

    running, waiting, balloon = snapshot.workloads
    assert (running.id, running.name, running.gpus, running.pool) == ("ml/train", "train-llm", 4.0, "gpu")
    assert running.submit == NOON - timedelta(hours=1)
    assert running.start == NOON - timedelta(minutes=55)
    assert (waiting.node, waiting.start, waiting.pool) == (None, None, None)
    assert balloon.placeholder
    assert any("1 GPU pods run on nodes outside" in note for note in snapshot.notes)


def test_containers_add_up_and_init_containers_do_not(server, cluster):
    one, three = ({"resources": {"requests": {"nvidia.com/gpu": n}}} for n in ("1", "3"))
    server.lists[POOLS] = [a_nodepool()]
    server.lists[PODS] = [
        a_pod("sum", node=None, spec={"containers": [one, one]}),
        a_pod("init", node=None, spec={"containers": [one], "initContainers": [three]}),
        a_pod(
            "sidecar", node=None, spec={"containers": [one], "initContainers": [{**three, "restartPolicy": "Always"}]}
        ),
    ]

    assert [work.gpus for work in cluster.observe().workloads] == [2.0, 3.0, 4.0]


def test_an_object_that_cannot_be_understood_stops_nothing(server, cluster):
    """Field report A22: a fractional GPU request is named and left out."""
    server.lists[POOLS] = [a_nodepool()]
    server.lists[PODS] = [a_pod("half", gpus="500m", node=None), a_pod("good", node=None)]

    snapshot = cluster.observe()

    assert [work.id for work in snapshot.workloads] == ["ml/good"]
    assert any("1 pods were left out" in note and "500m" in note for note in snapshot.notes)


def test_our_own_objects_are_read_back(server, cluster):
    labels = {"slice-advisor.io/pool": "gpu"}
    buffer = {
        "metadata": {"labels": labels, "annotations": {"slice-advisor.io/chunk-gpus": "8"}},
        "spec": {"replicas": 2},
    }
    setting = {"metadata": {"labels": labels, "annotations": {"slice-advisor.io/slice-length": "20m"}}}
    server.lists |= {POOLS: [a_nodepool()], BUFFERS: [buffer], MAPS: [setting]}

    pool = cluster.observe().pool("gpu")

    assert pool.warm == WarmBuffer(2, 8)
    assert pool.slice_minutes == 20.0


def test_a_cluster_without_capacity_buffers_is_observed_all_the_same(server, cluster):
    server.lists[POOLS] = [a_nodepool()]
    del server.lists[BUFFERS]

    snapshot = cluster.observe()

    assert snapshot.pool("gpu").warm is None
    assert any("serves no CapacityBuffer" in note for note in snapshot.notes)


def test_long_lists_are_read_page_by_page(server, cluster):
    server.page = 2
    server.lists[POOLS] = [a_nodepool()]
    server.lists[NODES] = [a_k8s_node(f"n{n}") for n in range(5)]

    snapshot = cluster.observe()

    assert [node.name for node in snapshot.nodes] == [f"n{n}" for n in range(5)]
    asked = [target for target in server.asked if target.startswith(NODES)]
    assert [parse_qs(urlsplit(target).query).get("continue") for target in asked] == [None, ["2"], ["4"]]
    assert all("limit=500" in target for target in asked)


def test_only_pods_that_have_not_ended_are_asked_for(server, cluster):
    cluster.observe()

    (asked,) = (target for target in server.asked if target.startswith(PODS))
    assert parse_qs(urlsplit(asked).query)["fieldSelector"] == ["status.phase!=Succeeded,status.phase!=Failed"]


def test_a_list_that_expires_between_pages_is_begun_again(server, cluster):
    server.page = 1
    server.lists[POOLS] = [a_nodepool()]
    server.lists[NODES] = [a_k8s_node("n1"), a_k8s_node("n2")]
    server.instead[NODES] = [200, 410]

    assert [node.name for node in cluster.observe().nodes] == ["n1", "n2"]


def test_a_list_that_keeps_expiring_is_for_later(server, cluster):
    server.instead[NODES] = [410, 410]

    with pytest.raises(Transient, match="expired twice"):
        cluster.observe()


def test_a_server_that_answers_the_same_page_for_ever_is_for_later(server, cluster):
    page = json.dumps({"metadata": {"continue": "again"}, "items": []}).encode()
    server.instead[NODES] = [page, page, page]

    with pytest.raises(Transient, match="again and again"):
        cluster.observe()


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_an_overloaded_server_is_for_later(server, cluster, status):
    server.instead[PODS] = [status]

    with pytest.raises(Transient, match=f"{status}.*pods"):
        cluster.observe()


@pytest.mark.parametrize("status, remedy", [(401, "Renew them, or choose"), (403, "Grant get and list")])
def test_a_refused_list_says_what_to_do(server, cluster, status, remedy):
    server.instead[NODES] = [status]

    with pytest.raises(Refused, match=remedy):
        cluster.observe()


def test_a_cluster_without_karpenter_says_so(server, cluster):
    del server.lists[POOLS]

    with pytest.raises(Refused, match="Install Karpenter"):
        cluster.observe()


@pytest.mark.parametrize("body", [b"<html>proxy</html>", b"[]", b"\xff"])
def test_an_answer_that_is_no_list_is_for_later(server, cluster, body):
    server.instead[POOLS] = [body]

    with pytest.raises(Transient, match="nodepools"):
        cluster.observe()


def test_a_server_that_is_not_there_is_for_later():
    settings = client.Configuration()
    settings.host, settings.retries = "http://127.0.0.1:1", False
    with client.ApiClient(settings) as api, pytest.raises(Transient, match="could not be asked"):
        KubernetesCluster(api, ManualClock(NOON)).observe()


def test_writing_is_refused_in_so_many_words(cluster):
    with pytest.raises(Refused, match="not part of this version"):
        cluster.apply(PoolPatch(pool="gpu", fields={CONSOLIDATE_AFTER: "60s"}))


def test_a_kubeconfig_opens_the_cluster(server, tmp_path):
    server.lists[POOLS] = [a_nodepool()]
    file = kubeconfig_of(server, tmp_path)

    cluster = KubernetesCluster.connect(ManualClock(NOON), kubeconfig=file)

    assert [pool.name for pool in cluster.observe().pools] == ["gpu"]


def test_a_kubeconfig_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="kubeconfig"):
        KubernetesCluster.connect(ManualClock(NOON), kubeconfig=tmp_path / "none")


@pytest.mark.skipif("KUBECONFIG" in os.environ, reason="this shell already names a kubeconfig")
def test_without_any_configuration_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(Refused, match="service account nor kubectl's default file"):
        KubernetesCluster.connect(ManualClock(NOON))


JOBS = ObjectKind("jobs", "Job", "batch")
QUEUED = ObjectKind("workloads", "Workload", "kueue.x-k8s.io", ("v1beta2", "v1beta1"))
QUEUED_PATH = "/apis/kueue.x-k8s.io/v1beta1/workloads"
JOBS_PATH = "/apis/batch/v1/jobs"


@pytest.fixture
def objects(server) -> Iterator[KubernetesObjects]:
    settings = client.Configuration()
    settings.host, settings.retries = server.url, False
    server.lists |= {JOBS_PATH: [], QUEUED_PATH: []}
    with client.ApiClient(settings) as api:
        yield KubernetesObjects(api, "test")


def a_line(kind: str, name: str, version: str) -> dict:
    return {"type": kind, "object": {"metadata": {"uid": name, "resourceVersion": version}}}


def test_objects_are_listed_page_by_page_with_the_version_of_the_list(server, objects):
    server.page = 1
    server.lists[JOBS_PATH] = [{"metadata": {"uid": "a"}}, {"metadata": {"uid": "b"}}]
    first = objects.list(JOBS, 500, None)
    second = objects.list(JOBS, 500, first.token)
    assert [each["metadata"]["uid"] for each in (*first.items, *second.items)] == ["a", "b"]
    assert (first.version, first.token, second.token) == ("100", "1", None)
    assert server.queries(JOBS_PATH) == [{"limit": ["500"]}, {"limit": ["500"], "continue": ["1"]}]


def test_a_watch_asks_for_bookmarks_and_an_end_and_reads_line_by_line(server, objects):
    lines = [a_line("ADDED", "x", "101"), a_line("BOOKMARK", "", "105")]
    server.watches[JOBS_PATH] = [lines]
    events = list(objects.watch(JOBS, "100", 60.0))
    assert [(event.type, event.document["metadata"]["resourceVersion"]) for event in events] == [
        (WatchType.ADDED, "101"),
        (WatchType.BOOKMARK, "105"),
    ]
    asked = {"watch": ["true"], "allowWatchBookmarks": ["true"], "resourceVersion": ["100"], "timeoutSeconds": ["60"]}
    assert server.queries(JOBS_PATH, watch=True) == [asked]


@pytest.mark.parametrize(
    "answer",
    [410, [{"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old resource version"}}]],
)
def test_a_version_too_old_is_told_apart_from_any_object(server, objects, answer):
    """A21: 410 comes as a status of the answer or as an event in it."""
    server.watches[JOBS_PATH] = [answer]
    with pytest.raises(Expired, match="410"):
        list(objects.watch(JOBS, "100", 60.0))


@pytest.mark.parametrize(
    "answer",
    [
        500,
        429,
        b"<html>\n",
        b"[]\n",
        b'{"type": "NONSENSE"}\n',
        b'{"type": "ERROR", "object": {"code": 500, "reason": "InternalError"}}\n',
    ],
)
def test_a_watch_that_tells_nothing_sensible_is_for_later(server, objects, answer):
    server.watches[JOBS_PATH] = [answer]
    with pytest.raises(Transient, match="jobs"):
        list(objects.watch(JOBS, "100", 60.0))


def test_a_line_cut_off_by_a_lost_connection_is_no_event(server, objects):
    whole = json.dumps(a_line("ADDED", "x", "101")).encode() + b"\n"
    server.watches[JOBS_PATH] = [whole + b'{"type": "ADD']
    assert len(list(objects.watch(JOBS, "100", 60.0))) == 1


def test_the_newest_version_that_is_served_is_read_and_watched(server, objects):
    objects.list(QUEUED, 500, None)
    list(objects.watch(QUEUED, "100", 60.0))
    objects.list(QUEUED, 500, None)
    paths = [urlsplit(target).path for target in server.asked]
    assert paths == [QUEUED_PATH.replace("v1beta1", "v1beta2"), QUEUED_PATH, QUEUED_PATH, QUEUED_PATH]


def test_a_kind_that_is_not_served_is_told_apart_from_one_that_is_denied(server, objects):
    with pytest.raises(NotServed, match=r"jobsets.jobset.x-k8s.io"):
        objects.list(ObjectKind("jobsets", "JobSet", "jobset.x-k8s.io", ("v1alpha2",)), 500, None)
    server.instead[JOBS_PATH] = [403]
    with pytest.raises(
        Refused, match=r'apiGroups: \["batch"\], resources: \["jobs"\], verbs: \["get", "list", "watch"'
    ):
        objects.list(JOBS, 500, None)


def test_a_list_of_objects_that_cannot_be_had_now_is_for_later(server, objects):
    server.instead[JOBS_PATH] = [503, b"<html>"]
    for _ in range(2):
        with pytest.raises(Transient, match="jobs"):
            objects.list(JOBS, 500, None)
    settings = client.Configuration()
    settings.host, settings.retries = "http://127.0.0.1:1", False
    with client.ApiClient(settings) as api:
        with pytest.raises(Transient, match="could not be asked"):
            KubernetesObjects(api, "none").list(JOBS, 500, None)
        with pytest.raises(Transient, match="broke"):
            list(KubernetesObjects(api, "none").watch(JOBS, "1", 1.0))


def test_a_reflector_lives_through_a_410_of_a_real_client(server, objects):
    """A21 over HTTP: x is there once in its final state, y once, and the watch goes on from the new list."""
    clock = ManualClock(NOON)
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    server.watches[JOBS_PATH] = [[a_line("ADDED", "x", "101"), a_line("BOOKMARK", "", "105"), expired]]

    def pause(seconds: float) -> None:
        clock.advance(timedelta(seconds=seconds))
        server.lists[JOBS_PATH] = [
            a_line("", name, version)["object"] for name, version in (("x", "120"), ("y", "110"))
        ]
        server.version = "130"

    reflector = Reflector(
        JOBS, objects, lambda document, *_: document["metadata"]["resourceVersion"], Pace(clock, pause, lambda: 0.5)
    )
    reflector.refresh()
    reflector.follow(5)

    assert {uid: held.value for uid, held in reflector.objects.items() if held.there} == {"x": "120", "y": "110"}
    assert reflector.restarts == 1
    versions = [query["resourceVersion"] for query in server.queries(JOBS_PATH, watch=True)]
    assert versions[0] == ["100"]
    assert set(map(tuple, versions[1:])) == {("130",)}


def test_a_cluster_has_the_name_its_kubeconfig_gives_it(server, tmp_path):
    objects = KubernetesObjects.connect(kubeconfig=kubeconfig_of(server, tmp_path, "prod-eu"))
    assert objects.name == "prod-eu"
    assert objects.list(ObjectKind("pods", "Pod"), 500, None).version == "100"


def test_pages_that_expire_are_told_apart_and_items_that_are_no_objects_left_out(server, objects):
    server.page = 1
    server.lists[JOBS_PATH] = [{"metadata": {"uid": "a"}}, {"metadata": {"uid": "b"}}]
    server.instead[JOBS_PATH] = [200, 410, b'{"metadata": {}, "items": [null, 7, {"metadata": {}}]}']
    token = objects.list(JOBS, 500, None).token
    with pytest.raises(Expired, match="410"):
        objects.list(JOBS, 500, token)
    assert objects.list(JOBS, 500, None).items == ({"metadata": {}},)


def test_events_are_told_as_they_come_and_a_broken_connection_is_for_later(server, objects):
    received = threading.Event()
    first = json.dumps(a_line("ADDED", "x", "101")).encode() + b"\n"

    def stream() -> Iterator[bytes]:
        yield first[:20]
        yield first[20:]
        assert received.wait(10)
        yield first.replace(b"101", b"102")
        yield b""

    server.watches[JOBS_PATH] = [stream()]
    events = objects.watch(JOBS, "100", 60.0)
    assert next(events).document["metadata"]["resourceVersion"] == "101"
    received.set()
    assert next(events).document["metadata"]["resourceVersion"] == "102"
    with pytest.raises(Transient, match="broke"):
        next(events)
