from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.asks import ContainerAsk, GpuNode, effective_ask, is_gpu_resource, physical_gpus, sanitised
from advisor.errors import Refused

AMOUNTS = st.integers(0, 16).map(float)
CONTAINERS = st.lists(st.builds(ContainerAsk, AMOUNTS, st.booleans(), st.booleans()), max_size=6)


def test_names_of_the_api_server_and_of_kube_state_metrics_are_one():
    assert sanitised("nvidia.com/mig-1g.5gb") == "nvidia_com_mig_1g_5gb"
    assert all(is_gpu_resource(sanitised(name)) for name in ("nvidia.com/gpu", "nvidia.com/gpu.shared"))
    assert not is_gpu_resource("cpu")
    assert not is_gpu_resource("nvidia_com_gpu_operator")


@pytest.mark.parametrize(
    "containers, expected",
    [
        ([ContainerAsk(1), ContainerAsk(2)], 3),
        ([ContainerAsk(4, init=True), ContainerAsk(1)], 4),
        # A sidecar holds its own while an init container after it runs, and beside the containers.
        ([ContainerAsk(1, init=True, sidecar=True), ContainerAsk(4, init=True), ContainerAsk(2)], 5),
        ([ContainerAsk(4, init=True), ContainerAsk(1, init=True, sidecar=True), ContainerAsk(2)], 4),
        ([], 0),
    ],
)
def test_init_containers_and_sidecars_count_as_the_scheduler_counts_them(containers, expected):
    assert effective_ask(containers) == expected


@given(CONTAINERS)
def test_no_moment_of_a_pods_life_needs_more_than_its_ask(containers):
    """The oracle starts the pod: init containers one by one, sidecars from where they stand, then all the rest."""
    held, needed = 0.0, [0.0]
    for ask in containers:
        if ask.init and ask.sidecar:
            held += ask.amount
            needed.append(held)
        elif ask.init:
            needed.append(held + ask.amount)
    needed.append(held + sum(ask.amount for ask in containers if not ask.init))
    assert effective_ask(containers) == max(needed)


@pytest.mark.parametrize(
    "asked, node, expected",
    [
        ({"nvidia_com_gpu": 2}, GpuNode(), 2.0),
        ({"nvidia_com_gpu": 2}, GpuNode(replicas=4), 0.5),
        ({"nvidia_com_gpu_shared": 1}, GpuNode(replicas=4), 0.25),
        ({"nvidia_com_mig_1g_5gb": 2}, GpuNode(gpu_kind="NVIDIA A100-SXM4-40GB"), 2 / 7),
        ({"nvidia_com_mig_7g_40gb": 1}, GpuNode(), 1.0),
        ({"nvidia_com_mig_2g_12gb": 1}, GpuNode(gpu_kind="NVIDIA A30"), 0.5),
        ({"nvidia_com_mig_1g_6gb": 1}, GpuNode(), 0.25),
        ({"nvidia_com_mig_1g_10gb_me": 1}, GpuNode(), 1 / 7),
        # HAMi: cards stay cards, and cores or memory say how much of each.
        ({"nvidia_com_gpu": 2, "nvidia_com_gpucores": 30}, GpuNode(replicas=10), 0.6),
        ({"nvidia_com_gpu": 1, "nvidia_com_gpumem": 20_000}, GpuNode(replicas=10, memory_mib=40_000), 0.5),
        ({"nvidia_com_gpu": 1, "nvidia_com_gpumem_percentage": 25, "nvidia_com_gpucores": 10}, GpuNode(), 0.25),
        ({"nvidia_com_gpumem": 5_000}, GpuNode(), 1.0),
        ({"cpu": 8}, GpuNode(), 0.0),
    ],
)
def test_every_flavour_of_ask_is_counted_in_physical_gpus(asked, node, expected):
    assert physical_gpus(asked, node) == pytest.approx(expected)


def test_a_gpu_has_at_least_one_share():
    with pytest.raises(Refused, match="replicas"):
        GpuNode(replicas=0)
