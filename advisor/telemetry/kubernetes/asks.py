"""What the containers of a pod ask for, as its spec (or the template of one) says it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from advisor.cluster.documents import part, parts
from advisor.cluster.objects import Json
from advisor.cluster.quantities import parse_gpus
from advisor.domain.asks import ContainerAsk, GpuNode, effective_ask, is_gpu_resource, physical_gpus, sanitised
from advisor.domain.quantities import LARGEST_QUANTITY, parse_quantity
from advisor.errors import Refused

__all__ = ["PodAsk", "read_ask"]

_FRACTION = "gpu-fraction"
_MEMORY = "gpu-memory"
_DEVICES = "gpu-fraction-num-devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAsk:
    """GPU resources by sanitised name, CPUs, and the image of the container that asks for GPUs.

    ``fraction`` (of a GPU) or ``memory_mib`` on each of ``devices`` is what KAI is asked for by annotation.
    """

    asked: Mapping[str, float]
    fraction: float | None = None
    memory_mib: float | None = None
    devices: int = 1
    cpus: float | None = None
    image: str | None = None

    @property
    def for_gpus(self) -> bool:
        """Whether it asks for any GPU at all."""
        return self.fraction is not None or self.memory_mib is not None or any(self.asked.values())

    def physical(self, node: GpuNode) -> float:
        """Physical GPUs on ``node``; a share of memory is a whole GPU where the memory of the GPU is not known."""
        if self.fraction is not None:
            return self.fraction * self.devices
        if self.memory_mib is not None:
            return (min(self.memory_mib / node.memory_mib, 1.0) if node.memory_mib else 1.0) * self.devices
        return physical_gpus(self.asked, node)


def read_ask(spec: Json, annotations: Json) -> PodAsk:
    """The ask of a pod's ``spec`` and ``annotations``.

    Raises:
        Refused: an amount is no quantity, or asks for a part of a GPU where only whole ones can be had.
    """
    containers = list(_containers(spec))
    resources = {
        name
        for container, _, _ in containers
        for name in (*part(part(container, "resources"), "limits"), *part(part(container, "resources"), "requests"))
        if is_gpu_resource(sanitised(name))
    }
    asked = {
        sanitised(name): effective_ask(
            ContainerAsk(_gpus(container, name), init, sidecar) for container, init, sidecar in containers
        )
        for name in sorted(resources)
    }
    cpus = [ContainerAsk(_cpus(container), init, sidecar) for container, init, sidecar in containers]
    return PodAsk(
        asked=asked,
        fraction=_amount(annotations, _FRACTION, most=1.0),
        memory_mib=_amount(annotations, _MEMORY, most=math.inf),
        devices=int(_amount(annotations, _DEVICES, most=1024.0) or 1),
        cpus=effective_ask(cpus) or None,
        image=_image(spec),
    )


def _containers(spec: Json) -> Iterator[tuple[Json, bool, bool]]:
    """Each container in the order of the pod, whether it is an init container, and whether it keeps running."""
    for container in parts(spec, "initContainers"):
        yield container, True, container.get("restartPolicy") == "Always"
    for container in parts(spec, "containers"):
        yield container, False, False


def _gpus(container: Json, name: str) -> int:
    resources = part(container, "resources")
    # Extended resources cannot be overcommitted: limits and requests are equal where both stand.
    found = part(resources, "limits").get(name, part(resources, "requests").get(name, 0))
    return min(parse_gpus(found, "gpus"), LARGEST_QUANTITY)


def _cpus(container: Json) -> float:
    resources = part(container, "resources")
    return _number(part(resources, "requests").get("cpu", part(resources, "limits").get("cpu", 0)), "cpus")


def _number(value: object, field: str) -> float:
    return float(min(parse_quantity(value, field), Fraction(LARGEST_QUANTITY)))


def _image(spec: Json) -> str | None:
    containers = list(parts(spec, "containers"))
    of_gpus = [
        container
        for container in containers
        if any(is_gpu_resource(sanitised(name)) for name in part(part(container, "resources"), "limits"))
    ]
    return next((str(each["image"]) for each in (*of_gpus, *containers) if each.get("image")), None)


def _amount(annotations: Json, name: str, most: float) -> float | None:
    text = annotations.get(name)
    if text is None:
        return None
    amount = _number(text, "gpus")
    if not 0.0 < amount <= most:
        limit = f"the annotation {name} is above 0" + ("" if math.isinf(most) else f" and at most {most:g}")
        raise Refused("gpus", text, limit, "Correct the annotation.")
    return amount
