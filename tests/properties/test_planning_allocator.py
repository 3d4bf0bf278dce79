"""What must hold of every allocation, on clusters and requests of any shape."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.nodepools import ClusterSnapshot, Node, NodePool, Workload
from advisor.domain.slices import Allocation, Decision, SliceLength, SliceRequest
from advisor.planning.allocation_terms import AllocationTerms
from advisor.planning.allocator import allocate
from advisor.planning.request_order import in_order
from tests.builders import NOON, lognormal_durations

KINDS = {0.5: 4.0, 5.0: 0.4, 30.0: 1.0, 200.0: 1.5}
DURATIONS = [lognormal_durations(60.0 * median, min(sigma, 1.5)) for median, sigma in KINDS.items()]

durations = st.sampled_from(DURATIONS)


@st.composite
def clusters(draw) -> tuple[ClusterSnapshot, dict]:
    """One or two pools, up to four nodes each, partly used by work whose end is known or not."""
    pools, nodes, workloads, remaining = [], [], [], {}
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        limit = draw(st.none() | st.integers(0, 24))
        pools.append(
            NodePool(
                name=name,
                limits={} if limit is None else {"nvidia.com/gpu": str(limit)},
                node_gpus=draw(st.sampled_from([(4,), (1, 4), (2,)])),
                sharing_factor=draw(st.sampled_from([1, 2, 4])),
            )
        )
        for i in range(draw(st.integers(0, 4))):
            node = Node(
                name=f"{name}-{i}",
                pool=name,
                gpus=draw(st.sampled_from(pools[-1].node_gpus)),
                created=NOON - timedelta(minutes=draw(st.integers(0, 600))),
                ready=draw(st.booleans()),
                cordoned=draw(st.sampled_from([False, False, False, True])),
            )
            nodes.append(node)
            for j in range(draw(st.integers(0, node.gpus)) if node.ready else 0):
                workloads.append(
                    Workload(id=f"{node.name}/{j}", gpus=1.0, submit=NOON - timedelta(hours=1), node=node.name)
                )
                if draw(st.booleans()):
                    remaining[workloads[-1].id] = draw(durations)
    cluster = ClusterSnapshot(time=NOON, pools=tuple(pools), nodes=tuple(nodes), workloads=tuple(workloads))
    return cluster, remaining


@st.composite
def requests(draw) -> list[SliceRequest]:
    return [
        SliceRequest(
            id=f"r{i}",
            submit=NOON - timedelta(minutes=draw(st.integers(0, 5000))),
            gpus=draw(st.sampled_from([0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 9.0, 5000.0])),
            duration=draw(durations),
            pool=draw(st.sampled_from([None, None, None, "a", "b"])),
            urgent=draw(st.sampled_from([False, False, True])),
            deadline=draw(st.none() | st.just(NOON + timedelta(hours=2))),
            slice_length=draw(st.none() | st.sampled_from([SliceLength(5.0), SliceLength(30.0)])),
        )
        for i in range(draw(st.integers(0, 14)))
    ]


terms = st.builds(
    AllocationTerms,
    elastic=st.booleans(),
    wait_for_release=st.booleans(),
    batch_when_idle=st.booleans(),
    duration_level=st.sampled_from([0.5, 0.9]),
)


def placed(made: tuple[Allocation, ...]) -> list[Allocation]:
    return [one for one in made if one.decision is Decision.PLACED]


@given(clusters(), requests(), terms)
def test_every_request_ends_in_exactly_one_decision_with_a_reason(world, asked, rules):
    cluster, remaining = world
    made = allocate(cluster, asked, {}, rules, NOON, remaining)
    assert [one.request_id for one in made] == [request.id for request in asked]
    for one in made:
        assert one.reasons
        assert all(one.reasons)
        assert bool(one.slices) == (one.decision is Decision.PLACED)
        assert one.deferred_until is None or (one.decision is Decision.DEFERRED and one.deferred_until > NOON)
        assert one.launch_nodes == 0 or one.decision is Decision.DEFERRED


@given(clusters(), requests(), terms)
def test_no_share_is_ever_given_twice_and_none_that_is_in_use(world, asked, rules):
    cluster, remaining = world
    made = placed(allocate(cluster, asked, {}, rules, NOON, remaining))
    nodes = {node.name: node for node in cluster.nodes}
    factor = {pool.name: pool.sharing_factor for pool in cluster.pools}
    held = {one for allocation in made for one in allocation.slices}
    by_share = {}
    for one in held:
        by_share.setdefault(one.share, []).append(one)
    for share, slices in by_share.items():
        node = nodes[share.node]
        assert node.ready
        assert not node.cordoned
        assert 0 <= share.gpu < node.gpus
        assert share.replicas == factor[node.pool]
        ordered = sorted(slices)
        assert all(a.end <= b.start for a, b in itertools.pairwise(ordered))
    for name, node in nodes.items():
        busy = cluster.used_gpus(name) * factor[node.pool]
        assert busy + sum(share.node == name for share in by_share) <= node.gpus * factor[node.pool]


@given(clusters(), requests(), terms)
def test_a_gang_is_placed_whole_on_common_boundaries_and_not_spread_without_need(world, asked, rules):
    cluster, remaining = world
    by_id = {request.id: request for request in asked}
    pools = {pool.name: pool for pool in cluster.pools}
    pool_of = {node.name: pools[node.pool] for node in cluster.nodes}
    for one in placed(allocate(cluster, asked, {}, rules, NOON, remaining)):
        request = by_id[one.request_id]
        shares = {cut.share for cut in one.slices}
        pool = pool_of[one.slices[0].share.node]
        assert sum(share.physical_gpus for share in shares) == request.gpus
        assert {pool_of[share.node].name for share in shares} == {pool.name}
        starts = Counter(cut.start for cut in one.slices)
        assert set(starts.values()) == {len(shares)}
        assert min(starts) == NOON
        if request.gpus <= 1:
            assert len({(share.node, share.gpu) for share in shares}) == 1
        elif request.gpus <= max(node.gpus for node in cluster.nodes if pool_of[node.name] is pool):
            assert len({share.node for share in shares}) == 1


@given(clusters(), requests(), terms, st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_asking(world, asked, rules, random):
    cluster, remaining = world
    shuffled = random.sample(asked, len(asked))
    first = {one.request_id: one for one in allocate(cluster, asked, {}, rules, NOON, remaining)}
    again = {one.request_id: one for one in allocate(cluster, shuffled, {}, rules, NOON, remaining)}
    assert first == again


@given(clusters(), requests(), terms)
def test_an_extra_idle_node_never_unplaces_the_first_request(world, asked, rules):
    cluster, remaining = world
    if not asked:
        return
    first = in_order(asked, rules.ageing_days)[0].id

    def decision(snapshot: ClusterSnapshot) -> Decision:
        made = allocate(snapshot, asked, {}, rules, NOON, remaining)
        return next(one.decision for one in made if one.request_id == first)

    pool = cluster.pools[0]
    extra = Node(name="extra", pool=pool.name, gpus=pool.largest_node_gpus, created=NOON)
    larger = ClusterSnapshot(time=NOON, pools=cluster.pools, nodes=(*cluster.nodes, extra), workloads=cluster.workloads)
    if decision(cluster) is Decision.PLACED:
        assert decision(larger) is Decision.PLACED


@given(clusters(), requests(), terms)
def test_started_nodes_stay_within_the_limit(world, asked, rules):
    cluster, remaining = world
    made = allocate(cluster, asked, {}, rules, NOON, remaining)
    for pool in cluster.pools:
        started = sum(one.launch_nodes for one in made if one.launch_pool == pool.name)
        if pool.gpu_limit is None:
            continue
        standing = sum(node.gpus for node in cluster.nodes_of(pool.name))
        assert started * pool.node_gpus[0] <= max(0, int(pool.gpu_limit) - standing)
        assert started == 0 or rules.elastic
