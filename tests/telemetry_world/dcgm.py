"""What dcgm-exporter shows of a world in one dialect, with the nonsense it is known to say now and then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from advisor.telemetry.prometheus.samples import Series
from tests.telemetry_world.dialects import Dialect, Labelling, Metric, Quantity
from tests.telemetry_world.scrapes import Scrapes
from tests.telemetry_world.things import Device, Node, Pod, Slot
from tests.telemetry_world.world import World

__all__ = ["Dcgm", "Glitch", "exporter_pod"]

Floats = NDArray[np.float64]

_GLITCHES = 2e-4
"""Share of samples that are no measurement."""
_FLICKERS = 5e-4
"""Share of scrapes in which the pod's name is missing."""
_LINGERS = 0.05
"""Share of pods whose name stays on their GPU for up to half an hour after their end."""
_BLANK_32, _BLANK_64, _BLANK_FLOAT = 2147483632.0, 9223372036854775794.0, 140737488355328.0
_NONSENSE: Mapping[Quantity, tuple[tuple[str, float], ...]] = {
    Quantity.BUSY: (("sentinel", _BLANK_32), ("sentinel", _BLANK_64), ("nan", math.nan), ("impossible", 4294967295.0)),
    Quantity.ENGINE: (("sentinel", _BLANK_FLOAT), ("nan", math.nan), ("impossible", math.inf)),
    Quantity.MEMORY: (("sentinel", _BLANK_64), ("sentinel", _BLANK_32 + 1), ("nan", math.nan)),
    Quantity.ENERGY: (("sentinel", _BLANK_64), ("nan", math.nan)),
}
_XIDS = ((31, "GPU memory page fault"), (79, "GPU has fallen off the bus"), (43, "GPU stopped processing"))


@dataclass(frozen=True, slots=True)
class Glitch:
    """A sample that must be dropped, in every line of a GPU (or instance) at one moment."""

    metric: str
    uuid: str
    instance: int | None
    time: float
    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Part:
    """A GPU, or one instance of it, with the moments it was scraped and what it did then."""

    node: Node
    device: Device
    slot: Slot
    times: Floats
    compute: Floats
    memory: Floats

    @property
    def instance(self) -> int | None:
        return self.slot.instance


@dataclass
class Dcgm:
    """The exporters of a world, one on each node."""

    world: World
    dialect: Dialect
    scrapes: Scrapes
    _parts: list[_Part] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """Every metric it shows."""
        return (*self.dialect.metrics, self.dialect.xid)

    def family(self, name: str) -> list[Series]:
        """The series of one metric."""
        if name == self.dialect.xid:
            return [series for part in self._all() for series in self._xids(part)]
        metric = self.dialect.metrics[name]
        return [series for part in self._all() for series in self._lines(part, name, metric) if len(series.times)]

    def glitches(self) -> tuple[Glitch, ...]:
        """Every sample that is no measurement."""
        return tuple(
            glitch
            for name, metric in self.dialect.metrics.items()
            for part in self._all()
            for _, glitch in self._nonsense(part, name, metric)
        )

    def _all(self) -> list[_Part]:
        if not self._parts:
            self._parts = list(self._measured())
        return self._parts

    def _measured(self) -> Iterator[_Part]:
        for node in self.world.nodes:
            times = self.scrapes.of(node.name)
            until = self.world.end if node.removed is None else node.removed
            times = times[(times >= node.created) & (times < until)]
            for device in node.devices:
                cut = {slot.instance: slot for slot in reversed(device.slots)}
                for instance, slot in sorted(cut.items(), key=lambda item: item[1].number):
                    compute, memory = self.world.loads.of_device(device.uuid, instance, times)
                    yield _Part(node, device, slot, times, compute, memory)

    def _lines(self, part: _Part, name: str, metric: Metric) -> Iterator[Series]:
        whole = self._scaled(part, metric)
        for at, glitch in self._nonsense(part, name, metric):
            whole[at] = glitch.value
        labelling = metric.labelling
        labels = self._labels(part, name)
        if labelling is Labelling.NONE:
            yield Series(labels, part.times, whole)
        elif labelling is Labelling.ONE:
            yield from self._given_to_one(part, labels, whole)
        else:
            yield from self._given_to_each(part, labels, whole, metric, self._nonsense(part, name, metric))

    def _scaled(self, part: _Part, metric: Metric) -> Floats:
        if metric.quantity is Quantity.MEMORY:
            return part.memory * metric.scale
        if metric.quantity is Quantity.ENERGY:
            # It counts from when the driver was loaded, which was before the world began.
            since = crc32(part.device.uuid.encode()) % 10**7
            used = self.world.loads.joules(part.device.uuid, part.times)
            return np.round((since + used) * metric.scale)
        return np.round(part.compute * metric.scale, 4)

    def _given_to_one(self, part: _Part, labels: dict[str, str], values: Floats) -> Iterator[Series]:
        """Each sample with the name of the pod that has the GPU, or had it last for a while longer."""
        rng = self._rng(part, "labels")
        owner = np.full(len(part.times), -1)
        pods = self._tenants(part)
        for number, pod in enumerate(pods):
            until = float(pod.holds_until or self.world.end)
            if rng.random() < _LINGERS:
                until += rng.uniform(60.0, 1800.0)
            first, last = np.searchsorted(part.times, [pod.kubelet or self.world.end, until])
            owner[first:last] = number
        owner[rng.random(len(owner)) < _FLICKERS] = -1
        for number in np.unique(owner):
            chosen = owner == number
            more = {} if number < 0 else self._pod_labels(pods[number], None)
            yield Series({**labels, **more}, part.times[chosen], values[chosen])

    def _given_to_each(
        self,
        part: _Part,
        labels: dict[str, str],
        values: Floats,
        metric: Metric,
        nonsense: list[tuple[int, Glitch]],
    ) -> Iterator[Series]:
        """A line for each slot of each pod; one without a pod where there is none, or besides."""
        own = metric.labelling is Labelling.OWN
        unheld = np.ones(len(part.times), dtype=bool)
        for pod in self._tenants(part):
            first, last = np.searchsorted(
                part.times, [pod.kubelet or self.world.end, float(pod.holds_until or self.world.end)]
            )
            unheld[first:last] = False
            times, shown = part.times[first:last], values[first:last]
            slots = [slot for slot in pod.slots if slot.uuid == part.device.uuid]
            if own:
                compute, memory = self.world.loads.of_pod(pod, slots, times)
                shown = (memory if metric.quantity is Quantity.MEMORY else compute) * metric.scale
                shown = np.round(shown, 4)
                for at, glitch in nonsense:
                    if first <= at < last:
                        shown[at - first] = glitch.value
            for slot in slots:
                yield Series({**labels, **self._pod_labels(pod, slot)}, times, shown)
        if own:
            yield Series(labels, part.times, values)
        else:
            yield Series(labels, part.times[unheld], values[unheld])

    def _tenants(self, part: _Part) -> list[Pod]:
        found = [
            pod
            for pod in self.world.loads.tenants[part.device.uuid]
            if any(slot.uuid == part.device.uuid and slot.instance == part.instance for slot in pod.slots)
        ]
        return sorted(found, key=lambda pod: pod.scheduled or 0)

    def _labels(self, part: _Part, name: str) -> dict[str, str]:
        dialect, device = self.dialect, part.device
        labels = {"__name__": name, "gpu": str(device.index), "UUID": device.uuid}
        if dialect.bus:
            labels["pci_bus_id"] = f"00000000:{7 + 16 * device.index:02X}:00.0"
        labels |= {"device": f"nvidia{device.index}", "modelName": part.node.model}
        if part.slot.profile is not None:
            labels |= {"GPU_I_PROFILE": part.slot.profile, "GPU_I_ID": str(part.instance)}
        return {**labels, dialect.host_label: part.node.name, dialect.driver_label: dialect.driver}

    def _pod_labels(self, pod: Pod, slot: Slot | None) -> dict[str, str]:
        asking = [box for box in pod.containers if not box.init and box.asks]
        labels = {"container": asking[0].name, "namespace": pod.namespace, "pod": pod.name}
        if self.dialect.pod_uid:
            labels["pod_uid"] = pod.uid
        if self.dialect.vgpu and slot is not None:
            labels["vgpu"] = str(slot.number)
        return labels

    def _nonsense(self, part: _Part, name: str, metric: Metric) -> list[tuple[int, Glitch]]:
        rng = self._rng(part, name)
        found = []
        for at in sorted(set(rng.integers(0, max(len(part.times), 1), rng.poisson(_GLITCHES * len(part.times))))):
            # In bytes a blank of 32 bits is an amount of memory like any other.
            bytes_too = metric.quantity is Quantity.MEMORY and metric.scale > 1
            kinds = [one for one in _NONSENSE[metric.quantity] if not (bytes_too and one[1] == _BLANK_32 + 1)]
            reason, value = kinds[int(rng.integers(len(kinds)))]
            glitch = Glitch(name, part.device.uuid, part.instance, float(part.times[at]), value, reason)
            found.append((int(at), glitch))
        return found

    def _xids(self, part: _Part) -> Iterator[Series]:
        """The code of the last error, from it on; most GPUs have none, and then show nothing."""
        rng = self._rng(part, "xid")
        if len(part.times) == 0 or rng.random() > 0.1:
            return
        code, message = _XIDS[int(rng.integers(len(_XIDS)))]
        times = part.times[int(rng.integers(len(part.times))) :]
        labels = {**self._labels(part, self.dialect.xid), "err_code": str(code), "err_msg": message}
        yield Series(labels, times, np.broadcast_to(np.float64(code), len(times)))

    def _rng(self, part: _Part, what: str) -> np.random.Generator:
        seed = crc32(f"{part.device.uuid}/{part.instance}/{what}".encode())
        return np.random.default_rng((self.world.spec.seed, seed))


def exporter_pod(node: str) -> str:
    """The exporter's own pod on a node."""
    return f"nvidia-dcgm-exporter-{crc32(node.encode()) & 0xFFFFF:05x}"
