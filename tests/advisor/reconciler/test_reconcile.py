from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from advisor.clock import ManualClock
from advisor.cluster.fields import CONSOLIDATE_AFTER, GPU_LIMIT
from advisor.cluster.memory import MemoryCluster
from advisor.cluster.port import FIELD_MANAGER, Applied, ClusterWrite, PoolPatch
from advisor.domain.decisions import Verdict
from advisor.domain.nodepools import ClusterSnapshot, WarmBuffer
from advisor.domain.plans import Mode
from advisor.errors import Refused, Transient
from advisor.reconciler.actions import SLICE_LENGTH, WARM_CHUNKS
from advisor.reconciler.guards import GuardRules
from advisor.reconciler.pacing import RecentWants, changes_per_hour
from advisor.reconciler.reconcile import ReconcileInputs, complete_advice, reconcile
from tests.builders import NOON, a_cluster, a_node, a_node_pool, a_pool_advice, an_advice

OPTED_IN = GuardRules(patch_pools=True)


def a_memory(*pools, nodes=()):
    return MemoryCluster(a_cluster(*pools, nodes=nodes), ManualClock(NOON))


def inputs(**more):
    return ReconcileInputs(**{"now": NOON, "history_as_of": NOON, "rules": OPTED_IN, **more})


def verdicts(report):
    return {record.field: record.verdict for record in report.decisions}


class BusyCluster:
    """Somebody else acts between the first look and the second, or the write fails."""

    def __init__(self, behind: MemoryCluster, meanwhile=None, failure: Exception | None = None) -> None:
        self.behind, self.meanwhile, self.failure, self.looks = behind, meanwhile, failure, 0

    def observe(self) -> ClusterSnapshot:
        self.looks += 1
        if self.looks == 2 and self.meanwhile is not None:
            self.meanwhile()
        return self.behind.observe()

    def apply(self, write: ClusterWrite) -> Applied:
        if self.failure is not None:
            raise self.failure
        return self.behind.apply(write)


def test_recommend_writes_nothing_and_prints_the_patch():
    cluster = a_memory()
    before = cluster.observe()
    advice = an_advice(a_pool_advice(keep_alive_seconds=300, warm_gpus=8, slice_minutes=20.0))

    report = reconcile(advice, cluster, inputs())

    pool = report.advice.pools[0]
    assert cluster.observe() == before
    assert pool.patch["spec"] == {"disruption": {"consolidateAfter": "300s"}}
    assert [manifest["kind"] for manifest in pool.manifests] == ["PodTemplate", "CapacityBuffer", "ConfigMap"]
    assert all(change.allowed for change in pool.changes)
    assert set(verdicts(report).values()) == {Verdict.RECOMMENDED}
    assert all("left to a person" in record.reasons[-1] for record in report.decisions)


def test_observe_proposes_nothing():
    report = reconcile(an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.OBSERVE), a_memory(), inputs())

    assert report.advice.pools[0].patch is None
    assert verdicts(report) == {CONSOLIDATE_AFTER: Verdict.REFUSED}


def test_apply_writes_what_is_allowed_and_then_has_nothing_left_to_do():
    cluster = a_memory(a_node_pool(limits={"nvidia.com/gpu": "8"}), nodes=(a_node(),))
    advice = an_advice(a_pool_advice(keep_alive_seconds=300, gpu_limit=10, slice_minutes=20.0), mode=Mode.APPLY)

    report = reconcile(advice, cluster, inputs())
    again = reconcile(advice, cluster, inputs())

    pool = cluster.observe().pool("default")
    assert (pool.consolidate_after, pool.gpu_limit, pool.slice_minutes) == ("300s", "16", 20.0)
    assert set(verdicts(report).values()) == {Verdict.APPLIED}
    assert again.decisions == ()
    assert again.advice.pools[0].changes == ()


def test_a_later_patch_keeps_what_was_written_before():
    """Leaving our limit out of the next patch would delete it."""
    cluster = a_memory(a_node_pool(limits={"nvidia.com/gpu": "8"}))
    reconcile(an_advice(a_pool_advice(gpu_limit=16), mode=Mode.APPLY), cluster, inputs())

    reconcile(an_advice(a_pool_advice(gpu_limit=16, keep_alive_seconds=300), mode=Mode.APPLY), cluster, inputs())

    pool = cluster.observe().pool("default")
    assert (pool.gpu_limit, pool.consolidate_after) == ("16", "300s")


def test_a_far_target_is_reached_step_by_step():
    cluster, advice = a_memory(), an_advice(a_pool_advice(keep_alive_seconds=900), mode=Mode.APPLY)
    seen = []
    for _ in range(4):
        report = reconcile(advice, cluster, inputs())
        seen += [(record.new, record.wanted) for record in report.decisions]

    assert seen == [("360s", "900s"), ("720s", "900s"), ("900s", "900s")]


def test_a_refused_change_is_in_no_patch_and_says_why():
    advice = an_advice(a_pool_advice(keep_alive_seconds=300, slice_minutes=20.0, skilled=False), mode=Mode.APPLY)
    cluster = a_memory()

    report = reconcile(advice, cluster, inputs())

    assert verdicts(report) == {CONSOLIDATE_AFTER: Verdict.REFUSED, SLICE_LENGTH: Verdict.APPLIED}
    assert report.advice.pools[0].patch is None
    assert cluster.observe().pool("default").consolidate_after == "180s"
    assert any("no skill" in reason for reason in report.decisions[0].reasons)


def test_objects_of_our_own_need_no_opting_in():
    cluster = a_memory()
    advice = an_advice(a_pool_advice(keep_alive_seconds=300, warm_gpus=8), mode=Mode.APPLY)

    report = reconcile(advice, cluster, inputs(rules=GuardRules()))

    assert verdicts(report)[CONSOLIDATE_AFTER] is Verdict.RECOMMENDED
    assert verdicts(report)[WARM_CHUNKS] is Verdict.APPLIED
    assert cluster.observe().pool("default").warm == WarmBuffer(1, 8)
    assert cluster.observe().pool("default").consolidate_after == "180s"


def test_nothing_is_written_while_paused():
    cluster = a_memory()

    report = reconcile(
        an_advice(a_pool_advice(keep_alive_seconds=300, warm_gpus=8), mode=Mode.APPLY), cluster, inputs(paused=True)
    )

    assert set(verdicts(report).values()) == {Verdict.RECOMMENDED}
    assert cluster.observe().pool("default").warm is None


def test_a_field_rests_between_two_changes():
    ledger: dict[tuple[str, str], datetime] = {("default", CONSOLIDATE_AFTER): NOON - timedelta(minutes=10)}
    advice = an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.APPLY)

    report = reconcile(advice, a_memory(), inputs(last_applied=lambda pool, field: ledger.get((pool, field))))

    assert verdicts(report) == {CONSOLIDATE_AFTER: Verdict.REFUSED}
    assert "rests" in report.decisions[0].reasons[-1]


def test_what_somebody_claims_meanwhile_is_not_taken_from_them():
    cluster = a_memory()
    patch = PoolPatch(pool="default", fields={CONSOLIDATE_AFTER: "60s"})
    busy = BusyCluster(cluster, meanwhile=lambda: cluster.seen_by("argocd").apply(patch))

    report = reconcile(an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.APPLY), busy, inputs())

    assert verdicts(report) == {CONSOLIDATE_AFTER: Verdict.FAILED}
    assert cluster.observe().pool("default").consolidate_after == "60s"
    assert report.next_look_seconds == 30


def test_a_conflict_seen_only_by_the_server_is_reported():
    """The second look agrees, and the claim comes in between it and the write."""
    cluster = a_memory()

    class Racing(BusyCluster):
        def apply(self, write):
            claim = PoolPatch(pool="default", fields={CONSOLIDATE_AFTER: "60s"})
            self.behind.seen_by("argocd").apply(claim)
            return self.behind.apply(replace(write, expected_resource_version=None))

    report = reconcile(an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.APPLY), Racing(cluster), inputs())

    assert verdicts(report) == {CONSOLIDATE_AFTER: Verdict.FAILED}
    assert "argocd" in report.decisions[0].reasons[-1]
    assert cluster.observe().pool("default").consolidate_after == "60s"


def test_a_version_that_passed_between_look_and_write_is_tried_later():
    cluster = a_memory()

    class Racing(BusyCluster):
        def apply(self, write):
            self.behind.seen_by("argocd").apply(PoolPatch(pool="default", fields={GPU_LIMIT: "64"}))
            return self.behind.apply(write)

    report = reconcile(an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.APPLY), Racing(cluster), inputs())

    assert "observe again" in report.decisions[0].reasons[-1]
    assert cluster.observe().pool("default").consolidate_after == "180s"


def test_taking_over_is_a_decision_of_its_own():
    cluster = a_memory(a_node_pool(field_managers={CONSOLIDATE_AFTER: ("argocd",)}))
    advice = an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.APPLY)

    reconcile(advice, cluster, inputs())
    assert cluster.observe().pool("default").consolidate_after == "180s"

    reconcile(advice, cluster, inputs(rules=replace(OPTED_IN, take_over=True)))
    assert cluster.observe().pool("default").field_managers[CONSOLIDATE_AFTER] == (FIELD_MANAGER,)


def test_one_failing_write_stops_no_other_pool_and_is_tried_soon():
    cluster = a_memory(a_node_pool("a"), a_node_pool("b"))

    class Flaky(BusyCluster):
        def apply(self, write):
            if write.pool == "a":
                raise Transient("the API server is away")
            return self.behind.apply(write)

    advice = an_advice(
        a_pool_advice("a", keep_alive_seconds=300), a_pool_advice("b", keep_alive_seconds=300), mode=Mode.APPLY
    )
    report = reconcile(advice, Flaky(cluster), inputs())

    assert [record.verdict for record in report.decisions] == [Verdict.FAILED, Verdict.APPLIED]
    assert cluster.observe().pool("b").consolidate_after == "300s"
    assert report.next_look_seconds == 30


def test_a_write_that_is_refused_is_no_reason_to_hurry():
    refusal = Refused("apply", "default", "this cluster takes no writes", "Use the YAML.")
    advice = an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.APPLY)

    report = reconcile(advice, BusyCluster(a_memory(), failure=refusal), inputs())

    assert verdicts(report) == {CONSOLIDATE_AFTER: Verdict.FAILED}
    assert "takes no writes" in report.decisions[0].reasons[-1]
    assert report.next_look_seconds == 300


def test_a_pool_the_cluster_does_not_have_is_said_and_skipped():
    report = reconcile(an_advice(a_pool_advice("gone", keep_alive_seconds=300)), a_memory(), inputs())

    assert report.decisions == ()
    assert "no NodePool gone" in report.advice.pools[0].reasons[-1]
    assert report.next_look_seconds == 300


def test_a_stale_look_decides_nothing():
    report = reconcile(
        an_advice(a_pool_advice(keep_alive_seconds=300), mode=Mode.APPLY),
        a_memory(),
        inputs(now=NOON + timedelta(minutes=6)),
    )

    assert verdicts(report) == {CONSOLIDATE_AFTER: Verdict.REFUSED}


def test_half_a_buffer_is_never_written():
    """Its chunks are allowed and their size too, or neither is."""
    cluster = a_memory(a_node_pool(warm=WarmBuffer(4, 4)), nodes=(a_node(),))
    advice = an_advice(a_pool_advice(warm_gpus=96), mode=Mode.APPLY)

    report = reconcile(advice, cluster, inputs(rules=replace(OPTED_IN, most_warm_nodes=4)))

    assert [change.allowed for change in report.advice.pools[0].changes] == [False, True]
    assert report.advice.pools[0].manifests == ()
    assert cluster.observe().pool("default").warm == WarmBuffer(4, 4)


@pytest.mark.parametrize("first", [23.9, 24.1])
def test_a_forecast_that_swings_around_a_node_changes_the_limit_once(first):
    """Field report A23: 23.9 and 24.1 GPUs in turn every 5 minutes for 2 hours, on nodes of 8."""
    clock = ManualClock(NOON)
    cluster = MemoryCluster(a_cluster(a_node_pool(limits={"nvidia.com/gpu": "24"})), clock)
    wants, records, limits = RecentWants(), [], []
    for tick in range(24):
        now = NOON + timedelta(minutes=5 * tick)
        forecast = first if tick % 2 == 0 else 48.0 - first
        advice = an_advice(a_pool_advice(gpu_limit=forecast), mode=Mode.APPLY)
        report = reconcile(advice, cluster, inputs(now=now, history_as_of=now, wants=wants))
        wants, records = report.wants, [*records, *report.decisions]
        limits.append(cluster.observe().pool("default").gpu_limit)
        clock.advance(timedelta(minutes=5))

    assert sum(record.applied for record in records) == 1
    assert limits[1:] == ["32"] * 23, "up at once, and never down"
    assert changes_per_hour(records, NOON + timedelta(minutes=30)) == 1
    assert changes_per_hour(records, clock.now()) == 0


def test_a_limit_comes_down_after_a_quiet_while():
    """Field report A23: down only after 30 quiet minutes."""
    clock = ManualClock(NOON)
    cluster = MemoryCluster(a_cluster(a_node_pool(limits={"nvidia.com/gpu": "32"})), clock)
    wants, lowered_at = RecentWants().remembering(NOON - timedelta(minutes=5), "default", 32.0, 30), None
    for tick in range(12):
        now = NOON + timedelta(minutes=5 * tick)
        advice = an_advice(a_pool_advice(gpu_limit=20), mode=Mode.APPLY)
        report = reconcile(advice, cluster, inputs(now=now, history_as_of=now, wants=wants))
        wants = report.wants
        if lowered_at is None and cluster.observe().pool("default").gpu_limit == "24":
            lowered_at = 5 * tick
        clock.advance(timedelta(minutes=5))

    assert lowered_at == 30


def test_completing_advice_touches_no_cluster():
    snapshot = a_cluster(a_node_pool(), nodes=(a_node(),))
    advice = an_advice(a_pool_advice(keep_alive_seconds=300), a_pool_advice("gone"))

    completed = complete_advice(advice, snapshot, inputs())

    assert completed.pools[0].patch["metadata"] == {"name": "default"}
    assert completed.pools[1].patch is None
    assert completed.time == advice.time


def test_every_decision_has_its_own_name_and_remembers_the_models():
    advice = an_advice(a_pool_advice(keep_alive_seconds=300, warm_gpus=8, slice_minutes=20.0), mode=Mode.APPLY)

    report = reconcile(advice, a_memory(), inputs())

    assert len({record.id for record in report.decisions}) == len(report.decisions) == 4
    assert all(record.models == {"durations": "3", "demand": "2"} for record in report.decisions)
    assert report.decisions[0].change.allowed


def test_what_was_assumed_of_the_cluster_is_said_of_each_change_from_it():
    advice = an_advice(a_pool_advice(keep_alive_seconds=300, warm_gpus=8))
    described = complete_advice(advice, a_cluster(), inputs())
    assumed = complete_advice(advice, a_cluster(), inputs(cluster_assumed=True))

    said = {change.field: change.reasons[-1] for change in assumed.pools[0].changes if change.old is not None}
    assert said == {CONSOLIDATE_AFTER: "that 180s is set now was assumed, since no cluster was described"}
    assert assumed.cluster_assumed
    assert not described.cluster_assumed
    assert not any("assumed" in reason for change in described.pools[0].changes for reason in change.reasons)


@pytest.mark.parametrize("limit", ["1e400", "1e3", "12E"])
def test_an_odd_limit_is_compared_and_overflows_nothing(limit):
    advice = an_advice(a_pool_advice(warm_gpus=8, gpu_limit=64))

    (pool,) = complete_advice(advice, a_cluster(a_node_pool(limits={"nvidia.com/gpu": limit})), inputs()).pools

    assert {change.field for change in pool.changes} >= {GPU_LIMIT, WARM_CHUNKS}
    assert not any("nothing can be proposed" in reason for reason in pool.reasons)


def test_a_pool_of_which_nothing_can_be_proposed_stops_no_other():
    odd, sound = a_node_pool("odd", limits={"nvidia.com/gpu": "lots"}), a_node_pool("sound")
    advice = an_advice(*(a_pool_advice(name, keep_alive_seconds=300) for name in ("odd", "sound")), mode=Mode.APPLY)
    cluster = a_memory(odd, sound)

    report = reconcile(advice, cluster, inputs())

    first, second = report.advice.pools
    assert first.changes == ()
    assert "nothing can be proposed for NodePool odd: " in first.reasons[-1]
    assert "'lots' is refused" in first.reasons[-1]
    assert [change.field for change in second.changes] == [CONSOLIDATE_AFTER]
    assert cluster.observe().pool("sound").consolidate_after == "300s"
