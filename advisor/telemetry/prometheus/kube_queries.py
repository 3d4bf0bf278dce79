"""What is asked of kube-state-metrics, as a table.

Everything is asked hour by hour with functions over the hour, so that a pod seen by a single scrape is found and a
month of pods is a small answer. Series are told apart by the labels of the pod itself and of what Prometheus makes of
them where it renames (``exported_pod``); those of scrape targets, replicas and restarts are aggregated away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from advisor.domain.asks import GPU_RESOURCES, sanitised
from advisor.telemetry.prometheus.selectors import Matcher, Selector

__all__ = [
    "HOUR",
    "JOB_READINGS",
    "NODE_LABELS",
    "NODE_READINGS",
    "POD_READINGS",
    "Reading",
    "label_column",
    "label_reading",
    "query_of",
]

HOUR = 3600
"""Seconds that one answer of a reading covers."""

_POD = ("uid", "namespace", "pod", "exported_namespace", "exported_pod")
_JOB = ("namespace", "job_name", "exported_namespace")
_CONTAINER = ("container",)
_ASKS = Selector("kube_pod_container_resource_requests", (Matcher("resource", "=~", GPU_RESOURCES),))
_INIT_ASKS = Selector("kube_pod_init_container_resource_requests", (Matcher("resource", "=~", GPU_RESOURCES),))

_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Of = Literal["pod", "job", "node"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One metric of pods, jobs or nodes: which, the labels that matter beside the identity, and how to sum up an hour.

    ``costs`` says what is not known where the metric is missing; None where only some clusters can have it.
    """

    selector: Selector
    of: Of
    labels: tuple[str, ...] = ()
    least: bool = False
    restricted: bool = True
    costs: str | None = None

    @property
    def metric(self) -> str:
        """Its name."""
        return self.selector.metric

    @property
    def by(self) -> tuple[str, ...]:
        """The labels that stay."""
        identity = {"pod": _POD, "job": _JOB, "node": ("node",)}[self.of]
        renamed = tuple(f"exported_{label}" for label in self.labels if label == "container")
        return (*identity, *self.labels, *renamed)


def _pod(metric: str, *labels: str, least: bool = False, costs: str | None = None) -> Reading:
    return Reading(selector=Selector(metric), of="pod", labels=labels, least=least, costs=costs)


def _job(metric: str, *labels: str, costs: str | None = None) -> Reading:
    return Reading(selector=Selector(metric), of="job", labels=labels, costs=costs)


POD_READINGS = (
    Reading(
        selector=_ASKS,
        of="pod",
        labels=("resource", *_CONTAINER),
        restricted=False,
        costs="no pod is known to ask for GPUs: there is no history at all",
    ),
    Reading(selector=_INIT_ASKS, of="pod", labels=("resource", *_CONTAINER), restricted=False),
    _pod("kube_pod_init_container_info", *_CONTAINER, "restart_policy"),
    _pod("kube_pod_created", costs="submissions are not known: there is no history at all"),
    _pod(
        "kube_pod_status_scheduled_time", least=True, costs="waits end at the start of the container, not at the node"
    ),
    _pod(
        "kube_pod_container_state_started",
        *_CONTAINER,
        least=True,
        costs="starts are not known; the kubelet's first sight of the pod, before its image was pulled, stands in",
    ),
    _pod("kube_pod_start_time", least=True),
    _pod("kube_pod_completion_time", costs="ends are those of the last scrape, not of the container"),
    Reading(
        selector=Selector("kube_pod_status_phase", (Matcher("phase", "!=", "Unknown"),)),
        of="pod",
        labels=("phase",),
        costs="which pods ran, ended or failed is not known: there is no history at all",
    ),
    _pod("kube_pod_status_reason", "reason", costs="evicted pods look as if somebody had cancelled them"),
    _pod("kube_pod_status_disruption_reason", "reason"),
    _pod(
        "kube_pod_container_status_terminated_reason",
        *_CONTAINER,
        "reason",
        costs="failures of vanished pods are not told",
    ),
    _pod("kube_pod_container_status_restarts_total", *_CONTAINER, costs="restarts are not counted"),
    _pod("kube_pod_owner", "owner_kind", "owner_name", costs="gangs and retries look like jobs of their own"),
    _pod("kube_pod_info", "node", "priority_class", costs="GPU kinds, pools and shares of the nodes are not known"),
    _pod("kube_pod_container_info", *_CONTAINER, "image", "image_spec", costs="images are not known"),
)
"""Of pods. The first says which pods are asked about at all."""

JOB_READINGS = (
    _job("kube_job_created", costs="an object made anew under its old name is taken for the old one"),
    Reading(selector=Selector("kube_job_created"), of="job", least=True),
    _job("kube_job_status_start_time"),
    _job("kube_job_status_completion_time"),
    _job("kube_job_complete", "condition"),
    _job("kube_job_failed", "condition"),
    _job("kube_job_spec_parallelism", costs="tasks of one Job are taken for a gang"),
    _job("kube_job_spec_completions"),
    _job("kube_job_spec_active_deadline_seconds"),
    _job("kube_job_status_suspended"),
    _job("kube_job_owner", "owner_kind", "owner_name", costs="Jobs of one JobSet are taken apart"),
)
"""Of Kubernetes Jobs."""

NODE_LABELS = (
    "label_karpenter_sh_nodepool",
    "label_nvidia_com_gpu_product",
    "label_nvidia_com_gpu_replicas",
    "label_nvidia_com_gpu_sharing_strategy",
    "label_nvidia_com_gpu_memory",
    "label_karpenter_k8s_aws_instance_gpu_name",
)
"""What is asked of the labels of nodes, in this order."""

NODE_READINGS = (
    Reading(
        selector=Selector("kube_node_labels"),
        of="node",
        labels=NODE_LABELS,
        costs="pools, GPU kinds and replicas of time-sliced GPUs are not known (see --metric-labels-allowlist)",
    ),
    Reading(
        selector=Selector("kube_node_status_allocatable", (Matcher("resource", "=~", GPU_RESOURCES),)),
        of="node",
        labels=("resource",),
    ),
)
"""Of nodes."""


def label_column(name: str) -> str:
    """What kube-state-metrics calls the label ``name`` of an object.

    >>> label_column("slice-advisor.io/user"), label_column("createdBy")
    ('label_slice_advisor_io_user', 'label_created_by')
    """
    return f"label_{_WORD_BEGINS.sub('_', sanitised(name)).lower()}"


def label_reading(names: Sequence[str]) -> Reading:
    """The labels of pods called ``names``, as kube-state-metrics writes them (``label_user``)."""
    return _pod("kube_pod_labels", *names, costs="users are not known; namespaces stand in")


def query_of(reading: Reading, text: Callable[[Selector], str]) -> str:
    """The PromQL of one reading; ``text`` writes a selector, narrowed to the cluster asked for.

    Everything but the asks themselves is asked only of pods that ask for GPUs.
    """
    aggregate, over = ("min", "min_over_time") if reading.least else ("max", "max_over_time")
    found = f"{aggregate} by ({','.join(reading.by)}) ({over}({text(reading.selector)}[{HOUR}s]))"
    if reading.of != "pod" or not reading.restricted:
        return found
    asks = " or ".join(
        f"max by ({','.join(_POD)}) (max_over_time({text(selector)}[{HOUR}s]))" for selector in (_ASKS, _INIT_ASKS)
    )
    return f"{found} and on ({','.join(_POD)}) ({asks})"
