from dataclasses import replace
from datetime import timedelta

from advisor.clock import ManualClock
from advisor.cluster.fields import CONSOLIDATE_AFTER, GPU_LIMIT
from advisor.cluster.memory import MemoryCluster
from advisor.cluster.port import FIELD_MANAGER, PoolPatch
from advisor.domain.nodepools import Budget
from tests.builders import NOON, a_cluster, a_node, a_node_pool


def test_what_an_object_leaves_out_is_filled_in_as_the_server_does():
    bare = a_node_pool(consolidate_after=None)

    pool = MemoryCluster(a_cluster(bare), ManualClock(NOON)).observe().pool("default")

    assert pool.consolidate_after == "0s"
    assert pool.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert pool.budgets == (Budget("10%"),)


def test_an_empty_list_of_budgets_stays_empty():
    pool = MemoryCluster(a_cluster(a_node_pool(budgets=())), ManualClock(NOON)).observe().pool("default")

    assert pool.budgets == ()


def test_owners_named_by_the_snapshot_are_kept():
    owned = a_node_pool(field_managers={CONSOLIDATE_AFTER: ("argocd",)})
    cluster = MemoryCluster(a_cluster(owned), ManualClock(NOON))

    done = cluster.apply(PoolPatch(pool="default", fields={CONSOLIDATE_AFTER: "60s"}))

    assert [conflict.manager for conflict in done.conflicts] == ["argocd"]


def test_time_is_the_clocks_and_a_change_is_stamped_with_it():
    clock = ManualClock(NOON)
    cluster = MemoryCluster(a_cluster(), clock)
    clock.advance(timedelta(minutes=7))

    cluster.apply(PoolPatch(pool="default", fields={CONSOLIDATE_AFTER: "60s"}))

    assert cluster.observe().time == NOON + timedelta(minutes=7)
    assert cluster.observe().pool("default").last_changed == NOON + timedelta(minutes=7)


def test_other_people_change_the_cluster_while_owners_live_on():
    cluster = MemoryCluster(a_cluster(), ManualClock(NOON))
    cluster.apply(PoolPatch(pool="default", fields={GPU_LIMIT: "16"}))
    before = cluster.observe()

    changed = replace(before.pool("default"), weight=5)
    cluster.replace_snapshot(replace(before, pools=(changed, a_node_pool("new")), nodes=(a_node(),)))

    after = cluster.observe()
    assert after.pool("default").weight == 5
    assert after.pool("default").resource_version != before.pool("default").resource_version
    assert after.pool("default").field_managers == {GPU_LIMIT: (FIELD_MANAGER,)}
    assert after.pool("new").field_managers == {}


def test_a_look_put_back_unchanged_changes_no_version():
    cluster = MemoryCluster(a_cluster(), ManualClock(NOON))
    before = cluster.observe()

    cluster.replace_snapshot(before)

    assert cluster.observe() == before
