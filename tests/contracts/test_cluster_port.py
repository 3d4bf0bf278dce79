"""What every implementation of the cluster port promises; each names itself once in ``CLUSTERS``."""

from collections.abc import Callable

import pytest

from advisor.clock import ManualClock
from advisor.cluster.fields import BUDGETS, CONSOLIDATE_AFTER, CONSOLIDATION_POLICY, GPU_LIMIT, REPLICAS, WEIGHT
from advisor.cluster.memory import MemoryCluster
from advisor.cluster.port import ClusterPort, FieldConflict, PoolPatch, SliceSetting, WarmCapacity
from advisor.domain.nodepools import Budget, ClusterSnapshot, WarmBuffer
from advisor.errors import Refused, Stale
from tests.builders import NOON, a_cluster, a_node, a_node_pool

View = Callable[[str], ClusterPort]
"""The same cluster under a field manager's name."""


def memory(snapshot: ClusterSnapshot) -> View:
    return MemoryCluster(snapshot, ManualClock(NOON)).seen_by


CLUSTERS = {"memory": memory}


@pytest.fixture(params=sorted(CLUSTERS))
def cluster(request) -> View:
    pool = a_node_pool(limits={"nvidia.com/gpu": "32", "cpu": "1000"}, weight=10)
    static = a_node_pool("static", replicas=4)
    return CLUSTERS[request.param](a_cluster(pool, static, nodes=(a_node(),)))


def patch(**more) -> PoolPatch:
    fields = more.pop("fields", {CONSOLIDATE_AFTER: "300s"})
    return PoolPatch(pool=more.pop("pool", "default"), fields=fields, **more)


def the_pool(view: ClusterPort, name: str = "default"):
    return view.observe().pool(name)


def test_what_was_applied_is_seen(cluster):
    us = cluster("us")

    done = us.apply(patch(fields={CONSOLIDATE_AFTER: "300s", GPU_LIMIT: "48"}))

    assert done.written
    assert set(done.changed) == {CONSOLIDATE_AFTER, GPU_LIMIT}
    assert the_pool(us).consolidate_after == "300s"
    assert the_pool(us).gpu_limit == "48"


def test_limits_merge_key_by_key(cluster):
    us = cluster("us")

    us.apply(patch(fields={GPU_LIMIT: "48"}))

    assert the_pool(us).limits == {"nvidia.com/gpu": "48", "cpu": "1000"}


def test_who_owns_a_field_is_seen(cluster):
    us = cluster("us")

    us.apply(patch())

    assert the_pool(us).field_managers == {CONSOLIDATE_AFTER: ("us",)}


def test_another_value_of_a_claimed_field_is_a_conflict_and_nothing_is_written(cluster):
    cluster("gitops").apply(patch(fields={CONSOLIDATE_AFTER: "60s"}))
    us = cluster("us")

    done = us.apply(patch(fields={CONSOLIDATE_AFTER: "300s", GPU_LIMIT: "48"}))

    assert done.conflicts == (FieldConflict(CONSOLIDATE_AFTER, "gitops"),)
    assert not done.written
    assert the_pool(us).consolidate_after == "60s"
    assert the_pool(us).gpu_limit == "32"


def test_the_same_value_is_owned_together(cluster):
    cluster("gitops").apply(patch())
    us = cluster("us")

    done = us.apply(patch())

    assert done.written
    assert done.changed == ()
    assert the_pool(us).field_managers[CONSOLIDATE_AFTER] == ("gitops", "us")


def test_another_spelling_of_the_same_quantity_is_a_conflict(cluster):
    cluster("gitops").apply(patch(fields={GPU_LIMIT: "32"}))

    done = cluster("us").apply(patch(fields={GPU_LIMIT: "32000m"}))

    assert done.conflicts == (FieldConflict(GPU_LIMIT, "gitops"),)


def test_force_takes_a_field_over(cluster):
    cluster("gitops").apply(patch(fields={CONSOLIDATE_AFTER: "60s"}))
    us = cluster("us")

    done = us.apply(patch(force=True))

    assert done.written
    assert the_pool(us).consolidate_after == "300s"
    assert the_pool(us).field_managers[CONSOLIDATE_AFTER] == ("us",)
    assert not cluster("gitops").apply(patch(fields={CONSOLIDATE_AFTER: "60s"})).written


def test_a_write_that_changes_nothing_keeps_the_version(cluster):
    us = cluster("us")
    us.apply(patch())
    before = the_pool(us).resource_version

    done = us.apply(patch())

    assert done.resource_version == before == the_pool(us).resource_version


def test_a_version_that_has_passed_is_stale(cluster):
    us = cluster("us")
    seen = the_pool(us).resource_version
    cluster("gitops").apply(patch(fields={GPU_LIMIT: "48"}))

    with pytest.raises(Stale, match="observe again"):
        us.apply(patch(expected_resource_version=seen))
    assert the_pool(us).consolidate_after == "180s"


def test_the_expected_version_is_accepted(cluster):
    us = cluster("us")

    done = us.apply(patch(expected_resource_version=the_pool(us).resource_version))

    assert done.changed == (CONSOLIDATE_AFTER,)
    assert done.resource_version == the_pool(us).resource_version


def test_a_limit_left_out_by_its_only_owner_vanishes(cluster):
    us = cluster("us")
    us.apply(patch(fields={CONSOLIDATE_AFTER: "300s", GPU_LIMIT: "48"}))

    us.apply(patch(fields={CONSOLIDATE_AFTER: "300s"}))

    assert the_pool(us).gpu_limit is None


def test_what_is_owned_together_stays_when_one_leaves_it_out(cluster):
    us = cluster("us")
    us.apply(patch(fields={CONSOLIDATE_AFTER: "300s", GPU_LIMIT: "48"}))
    cluster("gitops").apply(patch(fields={GPU_LIMIT: "48"}))

    us.apply(patch(fields={CONSOLIDATE_AFTER: "300s"}))

    assert the_pool(us).gpu_limit == "48"
    assert the_pool(us).field_managers[GPU_LIMIT] == ("gitops",)


def test_budgets_and_policy_left_out_fall_back_to_the_defaults(cluster):
    us = cluster("us")
    held = {CONSOLIDATE_AFTER: "300s"}
    us.apply(patch(fields={**held, BUDGETS: (Budget("2"),), CONSOLIDATION_POLICY: "WhenEmpty", WEIGHT: 20}))

    us.apply(patch(fields=held))

    pool = the_pool(us)
    assert pool.budgets == (Budget("10%"),)
    assert pool.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert pool.weight is None


def test_a_required_field_cannot_be_left_out_by_its_only_owner(cluster):
    us = cluster("us")
    us.apply(patch())

    with pytest.raises(Refused, match="Required value"):
        us.apply(patch(fields={GPU_LIMIT: "48"}))
    assert the_pool(us).field_managers[CONSOLIDATE_AFTER] == ("us",)
    assert the_pool(us).gpu_limit == "32"


def test_budgets_are_one_list(cluster):
    us = cluster("us")
    us.apply(patch(fields={BUDGETS: (Budget("10%"), Budget("0", schedule="0 9 * * 1-5", duration="8h"))}))

    us.apply(patch(fields={BUDGETS: (Budget("1"),)}))

    assert the_pool(us).budgets == (Budget("1"),)


def test_a_pool_that_does_not_exist_is_not_made(cluster):
    us = cluster("us")

    with pytest.raises(Refused, match="creates no NodePool"):
        us.apply(patch(pool="other"))
    assert len(us.observe().pools) == 2


@pytest.mark.parametrize(
    "pool, fields, message",
    [
        ("default", {REPLICAS: 4}, "Cannot transition"),
        ("static", {WEIGHT: 5}, "'weight' is not supported on static NodePools"),
        ("static", {GPU_LIMIT: "8"}, r"only 'limits.nodes' is supported on static NodePools"),
    ],
)
def test_rules_that_span_fields_are_kept(cluster, pool, fields, message):
    us = cluster("us")
    before = the_pool(us, pool)

    with pytest.raises(Refused, match=message):
        us.apply(patch(pool=pool, fields=fields))
    assert the_pool(us, pool) == before


def test_replicas_of_a_static_pool_can_be_changed(cluster):
    us = cluster("us")

    us.apply(patch(pool="static", fields={REPLICAS: 6}))

    assert the_pool(us, "static").replicas == 6


def test_the_server_takes_schedules_that_karpenter_cannot_parse(cluster):
    """The CRD's pattern is looser than the parser: whoever relies on the server lets bad budgets through."""
    us = cluster("us")

    done = us.apply(patch(fields={BUDGETS: (Budget("0", schedule="0 0 * * sat-sun", duration="24h"),)}))

    assert done.written


def test_our_own_objects_are_seen_on_their_pool(cluster):
    us = cluster("us")
    version = the_pool(us).resource_version

    warm = us.apply(WarmCapacity(pool="default", buffer=WarmBuffer(2, 8)))
    setting = us.apply(SliceSetting(pool="default", minutes=30.0))

    assert warm.written
    assert setting.changed
    assert the_pool(us).warm == WarmBuffer(2, 8)
    assert the_pool(us).slice_minutes == 30.0
    assert the_pool(us).resource_version == version, "objects of our own leave the NodePool alone"


def test_nodes_and_work_are_seen(cluster):
    seen = cluster("us").observe()

    assert [node.name for node in seen.nodes_of("default")] == ["node-1"]
    assert seen.time == NOON
