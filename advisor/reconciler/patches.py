"""Manifests and patches as ``kubectl apply --server-side`` takes them.

A patch holds everything this program owns of a NodePool and nothing else: server-side apply *removes*
what its manager applied before and now leaves out, and a removed limit is no limit at all. Fields under
``spec.template`` cannot be named here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from advisor.cluster.fields import (
    BUDGETS,
    CONSOLIDATE_AFTER,
    CONSOLIDATION_POLICY,
    DISRUPTION_FIELDS,
    GPU_LIMIT,
    REPLICAS,
    WEIGHT,
    WRITABLE_FIELDS,
    FieldValue,
    check_field,
    field_of,
)
from advisor.cluster.port import FIELD_MANAGER, PoolPatch
from advisor.cluster.projection import (
    CHUNK_ANNOTATION,
    NODEPOOL_LABEL,
    OWNED_LABEL,
    POOL_LABEL,
    SLICE_LENGTH_ANNOTATION,
)
from advisor.domain.nodepools import GPU_RESOURCE, NodePool, Taint, WarmBuffer
from advisor.domain.plans import Change
from advisor.reconciler.actions import NODE_POOL, SLICE_LENGTH, kind_of, own_name, shown_amount
from advisor.reconciler.budgets import budget_documents, budgets_from_text

__all__ = ["APPLY_COMMAND", "buffer_manifests", "pool_manifest", "pool_patch", "slice_manifest", "to_yaml"]

APPLY_COMMAND = f"kubectl apply --server-side --field-manager={FIELD_MANAGER} -f -"
"""How the printed YAML is meant to be applied: under the name that the advisor itself uses."""

_PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
_PATHS = {
    CONSOLIDATE_AFTER: ("disruption", "consolidateAfter"),
    CONSOLIDATION_POLICY: ("disruption", "consolidationPolicy"),
    BUDGETS: ("disruption", "budgets"),
    GPU_LIMIT: ("limits", GPU_RESOURCE),
    WEIGHT: ("weight",),
    REPLICAS: ("replicas",),
}


def pool_patch(pool: NodePool, changes: Sequence[Change], *, take_over: bool = False) -> PoolPatch | None:
    """The patch that makes these changes of a NodePool, None where none of them is of a NodePool.

    Beside the changes it holds every field this program already owns, as it stands; and
    ``consolidateAfter``, which the API server requires, beside any other field of ``spec.disruption``.

    Raises:
        Refused: a field that may not be written, or a value that the API server would not take.
    """
    wanted = {change.field: _value(change) for change in changes if kind_of(change) == NODE_POOL}
    if not wanted:
        return None
    mine = [name for name in WRITABLE_FIELDS if FIELD_MANAGER in pool.field_managers.get(name, ())]
    if any(name in DISRUPTION_FIELDS for name in wanted):
        mine.append(CONSOLIDATE_AFTER)
    kept = {name: value for name in mine if (value := field_of(pool, name)) is not None}
    return PoolPatch(
        pool=pool.name,
        fields={**kept, **wanted},
        expected_resource_version=pool.resource_version or None,
        force=take_over,
    )


def pool_manifest(patch: PoolPatch) -> dict[str, object]:
    """The patch as a manifest: identity and the fields, no more."""
    spec: dict[str, Any] = {}
    for name in WRITABLE_FIELDS:
        if name in patch.fields:
            place = spec
            for step in _PATHS[name][:-1]:
                place = place.setdefault(step, {})
            place[_PATHS[name][-1]] = _document(patch.fields[name])
    return {"apiVersion": "karpenter.sh/v1", "kind": NODE_POOL, "metadata": {"name": patch.pool}, "spec": spec}


def buffer_manifests(pool: NodePool, buffer: WarmBuffer, namespace: str) -> tuple[dict[str, object], ...]:
    """Warm capacity as objects: the PodTemplate of one chunk, and the CapacityBuffer that counts them.

    Requests *and* limits are written, since nothing defaults a PodTemplate: with limits alone the chunks
    would have no size.
    """
    name = own_name(pool.name)
    gpus = {GPU_RESOURCE: str(buffer.gpus_each)}
    container = {"name": "chunk", "image": _PAUSE_IMAGE, "resources": {"requests": gpus, "limits": dict(gpus)}}
    pod_spec: dict[str, Any] = {"nodeSelector": {NODEPOOL_LABEL: pool.name}, "containers": [container]}
    if pool.taints:
        pod_spec["tolerations"] = [_toleration(taint) for taint in pool.taints]
    template: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": _metadata(pool, name, namespace),
        "template": {"metadata": {"labels": {POOL_LABEL: pool.name, OWNED_LABEL: "true"}}, "spec": pod_spec},
    }
    capacity: dict[str, object] = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {
            **_metadata(pool, name, namespace),
            "annotations": {CHUNK_ANNOTATION: str(buffer.gpus_each)},
        },
        "spec": {"podTemplateRef": {"name": name}, "replicas": buffer.replicas},
    }
    return template, capacity


def slice_manifest(pool: NodePool, minutes: float, namespace: str) -> dict[str, object]:
    """The slice length of a pool, on a ConfigMap of our own: the NodePool itself is left alone."""
    length = str(shown_amount(SLICE_LENGTH, minutes))
    metadata = _metadata(pool, own_name(pool.name), namespace)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": {SLICE_LENGTH_ANNOTATION: length}},
        "data": {"nodepool": pool.name, "slice-length": length},
    }


def to_yaml(manifests: Iterable[Mapping[str, object]], notes: Iterable[str] = ()) -> str:
    """The manifests as YAML documents that kubectl takes from standard input; empty where there are none.

    Comments say ``notes``, how, and which namespaces must be there first: server-side apply makes none.
    """
    documents = [dict(manifest) for manifest in manifests]
    if not documents:
        return ""
    text: str = yaml.dump_all(documents, Dumper=_PlainDumper, sort_keys=False, explicit_start=True)
    spaces = dict.fromkeys(space for one in documents if (space := _namespace(one)) is not None)
    first = "".join(f"# once, where it is not there yet: kubectl create namespace {space}\n" for space in spaces)
    # A name of the history may hold a line break, and a comment ends with its line.
    said = "".join(f"# note: {' '.join(note.split())}\n" for note in notes)
    return f"{said}# {APPLY_COMMAND}\n{first}{text}"


class _PlainDumper(yaml.SafeDumper):
    """Spells a repeated value out instead of pointing at it, which people read and kubectl takes alike."""

    def ignore_aliases(self, data: object) -> bool:
        """Always: no anchors."""
        del data
        return True


def _metadata(pool: NodePool, name: str, namespace: str) -> dict[str, Any]:
    labels = {POOL_LABEL: pool.name, OWNED_LABEL: "true", "app.kubernetes.io/managed-by": FIELD_MANAGER}
    return {"name": name, "namespace": namespace, "labels": labels}


def _namespace(document: Mapping[str, object]) -> object:
    metadata = document.get("metadata")
    return metadata.get("namespace") if isinstance(metadata, Mapping) else None


def _toleration(taint: Taint) -> dict[str, str]:
    if taint.value is None:
        return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


def _value(change: Change) -> FieldValue:
    value: FieldValue = budgets_from_text(str(change.new)) if change.field == BUDGETS else _plain(change)
    check_field(change.field, value)
    return value


def _plain(change: Change) -> str | int:
    if isinstance(change.new, int) and not isinstance(change.new, bool):
        return change.new
    return str(change.new)


def _document(value: FieldValue) -> object:
    return budget_documents(value) if isinstance(value, tuple) else value
