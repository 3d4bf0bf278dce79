"""What holds for any pool and any advice."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.clock import ManualClock
from advisor.cluster.fields import GPU_LIMIT, WRITABLE_FIELDS, consolidate_after_seconds, field_of
from advisor.cluster.memory import MemoryCluster
from advisor.cluster.port import PoolPatch
from advisor.cluster.quantities import parse_quantity
from advisor.domain.nodepools import WarmBuffer
from advisor.domain.plans import Mode
from advisor.reconciler.actions import applied_to, diff, kind_of
from advisor.reconciler.guards import GuardRules
from advisor.reconciler.patches import pool_manifest, pool_patch, to_yaml
from advisor.reconciler.reconcile import ReconcileInputs, propose, reconcile
from tests.builders import NOON, a_cluster, a_node_pool, a_pool_advice, an_advice

whole_limits = st.integers(0, 200).map(lambda gpus: {"nvidia.com/gpu": str(gpus)})
pools = st.builds(
    a_node_pool,
    consolidate_after=st.sampled_from(["0s", "30s", "3m", "1h30m", "12h", "Never"]),
    limits=st.one_of(st.just({}), whole_limits, st.just({"nvidia.com/gpu": "32000m", "cpu": "1k"})),
    node_gpus=st.sampled_from([(8,), (1, 8), (4,), (1,)]),
    warm=st.one_of(st.none(), st.builds(WarmBuffer, st.integers(0, 9), st.integers(1, 8))),
    slice_minutes=st.one_of(st.none(), st.floats(0.5, 500.0)),
    sharing_factor=st.sampled_from([1, 1, 1, 4]),
    replicas=st.one_of(st.none(), st.none(), st.integers(0, 5)),
)
advice = st.builds(
    a_pool_advice,
    keep_alive_seconds=st.integers(0, 20_000),
    warm_gpus=st.integers(0, 12).map(lambda nodes: 8 * nodes),
    gpu_limit=st.one_of(st.none(), st.integers(0, 300)),
    slice_minutes=st.one_of(st.none(), st.floats(0.5, 500.0)),
    skilled=st.booleans(),
)


def inputs() -> ReconcileInputs:
    return ReconcileInputs(now=NOON, history_as_of=NOON, rules=GuardRules(patch_pools=True))


@given(pools, advice)
def test_the_difference_on_its_own_result_is_nothing(pool, wanted):
    changes = diff(wanted, pool)

    assert diff(wanted, applied_to(pool, changes)) == ()


@given(pools, advice)
def test_no_field_is_named_that_replaces_a_node(pool, wanted):
    for change in diff(wanted, pool):
        assert kind_of(change) != "NodePool" or change.field in WRITABLE_FIELDS
        assert "template" not in change.field or kind_of(change) == "CapacityBuffer"


@given(pools, advice)
def test_whatever_is_allowed_the_server_takes(pool, wanted):
    cluster = MemoryCluster(a_cluster(replace(pool, replicas=None)), ManualClock(NOON))
    proposal = propose(wanted, cluster.observe(), Mode.APPLY, inputs())

    patch = pool_patch(proposal.pool, proposal.of("NodePool"))

    if patch is not None:
        assert cluster.apply(patch).written
        assert pool_manifest(patch) == proposal.patch
        assert to_yaml([pool_manifest(patch)])
        limit = patch.fields.get(GPU_LIMIT)
        assert limit is None or parse_quantity(limit, "limit") % pool.largest_node_gpus == 0


@given(pools, advice)
def test_applying_again_and_again_arrives_or_stands_still(pool, wanted):
    """Steps come to an end: after enough looks nothing more is written, whatever is still refused."""
    cluster = MemoryCluster(a_cluster(pool), ManualClock(NOON))
    given_advice = an_advice(wanted, mode=Mode.APPLY)
    for _ in range(40):
        if not any(record.applied for record in reconcile(given_advice, cluster, inputs()).decisions):
            break
    else:
        raise AssertionError("still writing after 40 looks")


@given(pools, advice)
def test_recommend_never_writes(pool, wanted):
    cluster = MemoryCluster(a_cluster(pool), ManualClock(NOON))
    before = cluster.observe()

    report = reconcile(an_advice(wanted), cluster, inputs())

    assert cluster.observe() == before
    assert not any(record.applied for record in report.decisions)


managers = st.sampled_from(["us", "gitops", "kubectl"])
applies = st.tuples(
    managers,
    st.dictionaries(
        st.sampled_from(["spec.disruption.consolidateAfter", GPU_LIMIT]), st.sampled_from(["60s", "90s"]), min_size=1
    ),
    st.booleans(),
)


@given(st.lists(applies, max_size=12))
def test_a_field_that_is_owned_has_the_value_its_owners_last_applied(steps):
    """The oracle keeps, for each manager, what it applied last; every owner of a field agrees on its value."""
    cluster = MemoryCluster(a_cluster(a_node_pool(limits={"nvidia.com/gpu": "8"})), ManualClock(NOON))
    last: dict[str, dict[str, str]] = {}
    for manager, fields, force in steps:
        # Keep consolidateAfter in, which the server requires of its only owner.
        whole = {"spec.disruption.consolidateAfter": "60s", **fields}
        if GPU_LIMIT in whole:
            whole[GPU_LIMIT] = str(int(consolidate_after_seconds(whole[GPU_LIMIT])))
        done = cluster.seen_by(manager).apply(PoolPatch(pool="default", fields=whole, force=force))
        if done.written:
            last[manager] = whole
        pool = cluster.observe().pool("default")
        for field, owners in pool.field_managers.items():
            assert all(last[owner][field] == field_of(pool, field) for owner in owners)
