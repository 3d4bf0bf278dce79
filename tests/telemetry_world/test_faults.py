"""What goes wrong on the way, and what may then still be expected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import KSM_JOB, Telemetry
from tests.telemetry_world.faults import ClockSkew, KubeStateRestart, Outage, ha_pair, relabelled_halfway
from tests.telemetry_world.observer import expected, kube_state_scrapes
from tests.telemetry_world.world import WorldSpec, a_world


@pytest.fixture(scope="module")
def shown() -> Telemetry:
    return Telemetry(a_world(WorldSpec(days=3, gpus=10, jobs=150, seed=2)), DIALECTS["exporter-3.3-relabelled"])


def _with(shown: Telemetry, *faults) -> Telemetry:
    return replace(shown, faults=faults)


def _outage_over(shown: Telemetry, story: str) -> tuple[Outage, str]:
    """An hour before and after the moment a pod of that story was deleted while it ran."""
    pod = next(
        pod
        for work in shown.world.works
        if work.story == story
        for pod in work.pods
        if pod.deleted and pod.started and pod.deleted - pod.started > 7200
    )
    return Outage(pod.deleted - 3600, pod.deleted + 3600), pod.uid


def test_in_an_outage_nothing_is_kept(shown):
    outage, _ = _outage_over(shown, "cancelled")
    broken = _with(shown, outage)
    for name in ("up", "kube_pod_created", "DCGM_FI_DEV_FB_USED"):
        for series in broken.family(name):
            assert not ((series.times >= outage.begin) & (series.times < outage.end)).any()
    lost = sum(len(one.times) for one in shown.family("up")) - sum(len(one.times) for one in broken.family("up"))
    assert lost >= 120


def test_what_vanished_in_an_outage_is_censored_when_it_was_last_seen(shown):
    outage, uid = _outage_over(shown, "cancelled")

    def job(telemetry: Telemetry):
        return next(one.job for one in expected(telemetry) if one.work.pods and one.work.pods[0].uid == uid)

    assert job(shown).outcome is Outcome.CANCELLED
    lost = job(_with(shown, outage))
    assert lost.outcome is Outcome.CENSORED
    assert outage.begin - 60 <= lost.last_seen.timestamp() < outage.begin


def test_work_outside_an_outage_is_expected_as_before(shown):
    outage, _ = _outage_over(shown, "cancelled")
    before, after = expected(shown), expected(_with(shown, outage))
    changed = [one.work for one, other in zip(before, after, strict=True) if one != other]
    assert changed
    for work in changed:
        moments = [pod.deleted or shown.world.end for pod in work.pods]
        assert max(moments) >= outage.begin - 60
        assert min(pod.created for pod in work.pods) < outage.end + 60


def test_a_restart_of_kube_state_metrics_shows_as_down(shown):
    fault = KubeStateRestart(shown.world.start + 86400)
    broken = _with(shown, fault)
    (up,) = broken.raw("up", job=KSM_JOB)
    assert (up.values == 0).sum() == 3
    assert len(kube_state_scrapes(shown)) - len(kube_state_scrapes(broken)) == 3
    assert len(broken.family("DCGM_FI_DEV_FB_USED")) == len(shown.family("DCGM_FI_DEV_FB_USED"))
    for series in broken.family("kube_pod_container_status_restarts_total"):
        assert (np.diff(series.values) >= 0).all()


def test_a_pair_shows_everything_twice_and_changes_no_truth(shown):
    pair = ha_pair(shown)
    found = pair.raw("kube_pod_created")
    assert {series.labels["prometheus_replica"] for series in found} == {"a", "b"}
    assert abs(len(found) - 2 * len(shown.raw("kube_pod_created"))) <= 3
    a, b = (pair.raw("up", job=KSM_JOB, prometheus_replica=one)[0] for one in "ab")
    assert not set(a.times) & set(b.times)
    compared = 0
    for one, twice in zip(expected(shown), expected(pair), strict=True):
        # What is there for less than a scrape may be seen by one server and not by another.
        lasting = all(not pod.deleted or not pod.ended or pod.deleted - pod.ended > 60 for pod in one.work.pods)
        if one.job and lasting and all(len(pod.attempts) < 2 for pod in one.work.pods):
            assert (one.job.start, one.job.outcome) == (twice.job.start, twice.job.outcome)
            compared += 1
    assert compared > 100


def test_skewed_clocks_move_what_the_kubelet_says(shown):
    skewed = _with(shown, ClockSkew(kubelet_seconds=-3))
    for name, ahead in (("kube_pod_start_time", -3), ("kube_pod_completion_time", -3), ("kube_pod_created", 0)):
        before, after = shown.family(name), skewed.family(name)
        assert all(np.array_equal(one.values + ahead, other.values) for one, other in zip(before, after, strict=True))
    assert all(one.start_within == 3 for one in expected(skewed) if one.job)


def test_labels_change_halfway_and_the_truth_does_not(shown):
    changed = relabelled_halfway(shown)
    middle = changed.then[0]
    found = changed.raw("DCGM_FI_DEV_FB_USED")
    old = [series for series in found if "Hostname" in series.labels]
    new = [series for series in found if "hostname" in series.labels]
    assert len(old) + len(new) == len(found)
    assert max(series.times[-1] for series in old) < middle <= min(series.times[0] for series in new)
    assert {"exported_pod"} <= set(changed.raw("kube_pod_created")[0].labels)
    assert [one.job for one in expected(changed)] == [one.job for one in expected(shown)]
