"""Whatever an object looks like, it is read or refused by name; nothing else ever happens."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.cluster.reflector import Held
from advisor.errors import Refused
from advisor.telemetry.gangs import jobs_of
from advisor.telemetry.kubernetes.creators import CreatorReader, read_queued
from advisor.telemetry.kubernetes.nodes import read_claim_object, read_node_object
from advisor.telemetry.kubernetes.pods import PodReader
from advisor.telemetry.kubernetes.records import Records
from advisor.telemetry.start_latency import node_starts
from advisor.telemetry.tally import RejectionTally
from tests.kube_objects import (
    a_condition,
    a_container,
    at,
    claim_object,
    job_object,
    node_object,
    owned_by,
    pod_object,
    queued_object,
    stamp,
)

POD = pod_object(
    scheduled=10,
    started=70,
    finished=300,
    spec={
        "initContainers": [a_container(restartPolicy="Always")],
        "nodeSelector": {"nvidia.com/gpu.product": "L4"},
        "priority": 3,
        "activeDeadlineSeconds": 60,
    },
    status={
        "reason": "Evicted",
        "conditions": [a_condition("DisruptionTarget", 300, reason="X"), a_condition("Initialized", 60)],
    },
    meta={
        "ownerReferences": owned_by("Job", "train"),
        "deletionTimestamp": stamp(330),
        "deletionGracePeriodSeconds": 30,
        "labels": {"user": "ada"},
        "annotations": {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"},
    },
)
JOB = job_object(
    meta={"ownerReferences": owned_by("JobSet", "set"), "labels": {"user": "ada"}},
    spec={"suspend": True, "runPolicy": {"suspend": False}, "activeDeadlineSeconds": 5},
    status={"startTime": stamp(1), "completionTime": stamp(9), "conditions": [a_condition("Complete", 9)]},
)
QUEUED = queued_object("train", [a_condition("Evicted", 5)], schedulingStats={"evictions": [{"count": 1}]})
CLAIM = claim_object(Launched=5, Registered=40, Initialized=80)
READERS: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {
    "pod": (POD, PodReader(("user",))),
    "job": (JOB, CreatorReader("Job", ("user",))),
    "node": (node_object(replicas="4", strategy="mps", product="A-MIG-1g.5gb"), read_node_object),
    "claim": (CLAIM, read_claim_object),
    "queued": (QUEUED, read_queued),
}
JUNK = st.sampled_from(
    [
        *(None, "", "x", "-1", "1e999", 0, -5, 10**400, 1.5, float("nan"), True, [], [None], [3], {}, {"a": None}),
        *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00Z", "2026-03-02T12:00:00"),
    ]
)


def _places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in pairs:
        yield (*path, key)
        yield from _places(value, (*path, key))


def _spoilt(document: dict[str, Any], path: tuple[Any, ...], junk: Any) -> dict[str, Any]:
    spoilt: Any = copy.deepcopy(document)
    inner = spoilt
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    return spoilt


@pytest.mark.parametrize("kind", sorted(READERS))
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_an_object_spoilt_anywhere_is_read_or_refused(kind, data):
    document, read = READERS[kind]
    path = data.draw(st.sampled_from(list(_places(document))))
    spoilt = _spoilt(document, path, data.draw(JUNK))
    try:
        value = read(spoilt, None, at(5))
    except Refused:
        return
    if value is None:
        return
    kept = {name: {"uid": Held(value, "1", at(400))} if name == kind else {} for name in READERS}
    records = Records(kept["pod"], kept["job"], kept["node"], [value] if kind == "queued" else [])
    jobs_of(records.pod_records(), records.creator_records(), RejectionTally())
    node_starts(*([value] if name == kind else [] for name in ("claim", "node", "pod")))
