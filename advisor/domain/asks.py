"""What a pod asks for in GPUs, and what that is in physical ones.

Resource names are written the way kube-state-metrics does: every character that is neither a letter, a digit nor an
underscore becomes one, so that ``nvidia.com/mig-1g.5gb`` of the API server and ``nvidia_com_mig_1g_5gb`` are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from advisor.errors import Refused

__all__ = ["GPU_RESOURCES", "ContainerAsk", "GpuNode", "effective_ask", "is_gpu_resource", "physical_gpus", "sanitised"]

_WHOLE = "nvidia_com_gpu"
_SHARED = "nvidia_com_gpu_shared"
_CORES = "nvidia_com_gpucores"
_MEMORY = "nvidia_com_gpumem"
_MEMORY_PERCENT = "nvidia_com_gpumem_percentage"
_VIRTUAL = (_CORES, _MEMORY, _MEMORY_PERCENT)
_MIG = re.compile(r"nvidia_com_mig_(\d+)g_(\d+)gb(?:_\w+)?(?:_shared)?")

_PROFILE = re.compile(r"\d+g\.\d+gb.*")

GPU_RESOURCES = r"nvidia_com_(gpu|gpu_shared|mig_.+|gpucores|gpumem|gpumem_percentage)"
"""A regular expression of every resource name that says something about GPUs, as sanitised."""

_GPU = re.compile(GPU_RESOURCES)
_SLICES = 7
_FEWER_SLICES = 4
_OF_FOUR = ("A30", "RTX-PRO-6000", "RTX PRO 6000")
_GB_PER_SLICE_OF_FOUR = 6


class ContainerAsk(NamedTuple):
    """How much of one resource a container asks for, in the order of the pod.

    ``init`` marks an init container, ``sidecar`` one of those that keeps running (``restartPolicy: Always``).
    """

    amount: float
    init: bool = False
    sidecar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """What has to be known of a node to read its pods' asks: ``replicas`` per GPU, model, MiB of one GPU.

    ``mig_profile`` is the (sanitised) resource that each of its ``nvidia.com/gpu`` really is, where all its GPUs are
    cut alike (the MIG strategy ``single``).
    """

    replicas: int = 1
    gpu_kind: str | None = None
    memory_mib: float | None = None
    mig_profile: str | None = None

    def __post_init__(self) -> None:
        """Check the replicas.

        Raises:
            Refused: below 1.
        """
        if self.replicas < 1:
            raise Refused("replicas", self.replicas, "a GPU has at least one share", "Use 1 for a whole GPU.")

    @classmethod
    def of_labels(cls, labels: Mapping[str, str], shares_per_gpu: int = 1) -> GpuNode:
        """From the labels of a node (or of a selector of nodes) by sanitised name.

        ``shares_per_gpu`` is how many shares there are by another count, for nodes whose labels do not tell.
        """
        product = labels.get("nvidia_com_gpu_product", "")
        model, _, profile = product.removesuffix("-SHARED").partition("-MIG-")
        memory = labels.get("nvidia_com_gpu_memory", "")
        strategy, replicas = labels.get("nvidia_com_gpu_sharing_strategy"), labels.get("nvidia_com_gpu_replicas", "")
        told = int(replicas) if replicas.isdecimal() else 0
        shared = told > 0 and strategy not in {"none", ""}
        return cls(
            replicas=told if shared else 1 if strategy is not None else max(shares_per_gpu, 1),
            gpu_kind=labels.get("karpenter_k8s_aws_instance_gpu_name") or model or None,
            memory_mib=float(memory) if memory.isdecimal() else None,
            mig_profile=sanitised(f"nvidia.com/mig-{profile}") if _PROFILE.fullmatch(profile) else None,
        )


def sanitised(resource: str) -> str:
    """``resource`` as kube-state-metrics writes it in its label."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", resource)


def is_gpu_resource(resource: str) -> bool:
    """Whether a (sanitised) resource name says something about GPUs."""
    return _GPU.fullmatch(resource) is not None


def effective_ask(containers: Iterable[ContainerAsk]) -> float:
    """What the scheduler reserves of one resource for a pod with these ``containers``.

    The larger of its containers and sidecars all together, and of every init container with the sidecars
    started before it (Kubernetes, KEP-753).
    """
    together, sidecars, largest = 0.0, 0.0, 0.0
    for ask in containers:
        if not ask.init:
            together += ask.amount
        elif ask.sidecar:
            sidecars += ask.amount
        else:
            largest = max(largest, sidecars + ask.amount)
    return max(together + sidecars, largest)


def physical_gpus(asked: Mapping[str, float], node: GpuNode) -> float:
    """Physical GPUs behind what a pod ``asked`` for by sanitised resource name; 0 where it asked for none.

    Shares count ``1 / replicas``; a MIG instance its compute slices out of the GPU's seven (four on A30 and RTX PRO
    6000). Under HAMi ``nvidia.com/gpu`` counts cards whatever the replicas, and cores or memory say
    how much of each: the larger share of the two, a whole card where neither is asked for.
    """
    if node.mig_profile is not None and asked.get(_WHOLE):
        cut = asked.get(node.mig_profile, 0.0) + asked[_WHOLE]
        asked = {**asked, _WHOLE: 0.0, node.mig_profile: cut}
    cards = asked.get(_WHOLE, 0.0)
    if any(asked.get(name, 0.0) > 0 for name in _VIRTUAL):
        found = max(cards, 1.0) * _card_share(asked, node)
    else:
        found = cards / node.replicas
    found += asked.get(_SHARED, 0.0) / node.replicas
    for resource, amount in asked.items():
        if amount > 0 and (profile := _MIG.fullmatch(resource)) is not None:
            found += amount * _mig_share(int(profile[1]), int(profile[2]), node.gpu_kind)
    return found


def _card_share(asked: Mapping[str, float], node: GpuNode) -> float:
    shares: Sequence[float] = (
        asked.get(_CORES, 0.0) / 100.0,
        asked.get(_MEMORY_PERCENT, 0.0) / 100.0,
        asked.get(_MEMORY, 0.0) / node.memory_mib if node.memory_mib else 0.0,
    )
    most = max(shares)
    return min(most, 1.0) if most > 0 else 1.0


def _mig_share(slices: int, gigabytes: int, gpu_kind: str | None) -> float:
    if gpu_kind is not None:
        of_four = any(kind in gpu_kind for kind in _OF_FOUR)
    else:
        of_four = gigabytes == _GB_PER_SLICE_OF_FOUR * slices
    return min(slices / (_FEWER_SLICES if of_four else _SLICES), 1.0)
