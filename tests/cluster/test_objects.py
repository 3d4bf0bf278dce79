"""Lists and watches of a real API server: pages, bookmarks, and what it no longer keeps."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from advisor.clock import SystemClock
from advisor.cluster.kubernetes import KubernetesObjects
from advisor.cluster.objects import Expired, Json, NotServed, ObjectKind, Page, WatchType
from advisor.cluster.reflector import Pace, Reflector
from advisor.telemetry.kubernetes.kinds import PODS
from advisor.telemetry.kubernetes.pods import PodReader
from tests.cluster.conftest import a_waiting_pod
from tests.servers.control_plane import ControlPlane
from tests.servers.kube_api import KubeApi, Object

pytestmark = pytest.mark.cluster


@pytest.fixture
def reader(bench: ControlPlane) -> KubernetesObjects:
    return KubernetesObjects.connect(bench.kubeconfig("reader"))


def with_pods(api: KubeApi, namespace: str, count: int) -> str:
    """The path of a collection that holds so many pods."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: api.create(path, a_waiting_pod(f"pod-{n:04d}")), range(count)))
    return path


def pages(reader: KubernetesObjects, limit: int, first: Page) -> Iterator[Page]:
    page = first
    while True:
        yield page
        if page.token is None:
            return
        page = reader.list(PODS, limit, page.token)


def uids(items: list[Object]) -> set[str]:
    return {each["metadata"]["uid"] for each in items}


def test_pages_are_of_one_moment_whatever_comes_and_goes_between_them(
    api: KubeApi, namespace: str, reader: KubernetesObjects
) -> None:
    path = with_pods(api, namespace, 25)
    before = uids(api.read("/api/v1/pods")["items"])

    first = reader.list(PODS, 10, None)
    api.delete(f"{path}/pod-0024", grace_seconds=0)
    api.create(path, a_waiting_pod("pod-9999"))
    found = list(pages(reader, 10, first))

    assert uids([dict(each) for page in found for each in page.items]) == before
    assert [len(page.items) for page in found[:-1]] == [10] * (len(found) - 1)


def test_a_list_of_more_than_two_pages_is_read_whole(api: KubeApi, namespace: str, reader: KubernetesObjects) -> None:
    with_pods(api, namespace, 1201)
    there = uids(api.read("/api/v1/pods")["items"])
    reflector = Reflector(PODS, reader, PodReader(()), _pace())

    reflector.refresh()

    assert reflector.objects.keys() == there
    assert not reflector.refused


def test_a_page_that_is_no_longer_kept_is_told_as_such(
    bench: ControlPlane, api: KubeApi, namespace: str, reader: KubernetesObjects
) -> None:
    path = with_pods(api, namespace, 25)
    first = reader.list(PODS, 10, None)
    assert first.token is not None
    # What is there now is kept, so the list has to be of an earlier moment.
    api.create(path, a_waiting_pod("later"))
    _forgotten(bench)

    with pytest.raises(Expired, match="pods"):
        reader.list(PODS, 10, first.token)


def test_a_version_that_is_no_longer_kept_is_told_as_such(
    bench: ControlPlane, api: KubeApi, namespace: str, reader: KubernetesObjects
) -> None:
    version = reader.list(PODS, 500, None).version
    with_pods(api, namespace, 2)
    _forgotten(bench)

    with pytest.raises(Expired, match="pods"):
        list(reader.watch(PODS, version, 30))


def test_a_watch_in_which_nothing_happens_is_told_where_it_stands_before_it_ends(
    api: KubeApi, namespace: str, reader: KubernetesObjects
) -> None:
    version = reader.list(PODS, 500, None).version
    other = api.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "other"}})

    told = list(reader.watch(PODS, version, 5))

    assert {event.type for event in told} == {WatchType.BOOKMARK}
    assert _version(told[-1].document) >= _version(other)


def test_a_kind_that_is_not_served_is_told_as_such(reader: KubernetesObjects) -> None:
    with pytest.raises(NotServed, match="rayjobs"):
        reader.list(ObjectKind("rayjobs", "RayJob", "ray.io"), 10, None)


def _version(document: Json) -> int:
    return int(document["metadata"]["resourceVersion"])


def _pace() -> Pace:
    def impatient(seconds: float) -> None:
        raise AssertionError(f"nothing was to be waited for, and it was, for {seconds} s")

    return Pace(SystemClock(), impatient, lambda: 0.0)


def _forgotten(bench: ControlPlane) -> None:
    """Neither etcd nor a cache of the API server keeps anything but what is there now."""
    bench.api_server.stop(at_once=True)
    bench.forget_the_past()
    bench.api_server.start()
    with closing(bench.api()) as api:
        api.read("/api/v1/pods")
