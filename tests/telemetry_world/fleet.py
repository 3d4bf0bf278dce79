"""The nodes of a world: two steady NodePools and one whose nodes are taken away now and then."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.telemetry_world.things import Device, Node, Sharing, Slot

__all__ = ["HAMI_SPLIT", "POOLS", "QUARTERS", "REPLICAS", "SPOT", "Kind", "fleet"]

REPLICAS = 4
"""Time slices of a GPU."""
QUARTERS = 4
"""Parts of a card that HAMi gives away here: a quarter of its cores and memory each."""
HAMI_SPLIT = 10
"""How many pods HAMi lets onto a card, by which it multiplies what a node advertises."""

SPOT = "spot-l4"
_MIG_CUT = (("3g.20gb", 3, 1), ("2g.10gb", 2, 3), ("1g.5gb", 1, 9), ("1g.5gb", 1, 10))
_LONGEST_LIFE, _SHORTEST_LIFE = 4 * 86400, 86400 // 2


@dataclass(frozen=True, slots=True)
class Kind:
    """A model of GPU: its name in labels, in dcgm, and MiB of memory."""

    label: str
    model: str
    memory_mib: int
    node_gpus: int


POOLS = {
    "train-a100": Kind("NVIDIA-A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 40960, 8),
    "infer-t4": Kind("Tesla-T4", "Tesla T4", 15360, 4),
    SPOT: Kind("NVIDIA-L4", "NVIDIA L4", 23034, 2),
}
"""NodePools by name. The first has the big nodes; the last is the one whose nodes are lost."""

_SHARE_OF_GPUS = {"train-a100": 0.64, "infer-t4": 0.24, SPOT: 0.12}


def fleet(gpus: int, sharing: Sharing, start: int, end: int, rng: random.Random) -> tuple[Node, ...]:
    """Nodes with ``gpus`` GPUs at any time; one of a spot pool that is lost is replaced after some minutes."""
    nodes: list[Node] = []
    left = gpus
    for pool, kind in POOLS.items():
        wanted = left if pool == SPOT else min(round(gpus * _SHARE_OF_GPUS[pool]), left)
        left -= wanted
        while wanted > 0:
            size = min(kind.node_gpus, wanted)
            wanted -= size
            nodes += _lives(pool, size, sharing, (start, end), rng)
    return tuple(nodes)


def _lives(pool: str, size: int, sharing: Sharing, span: tuple[int, int], rng: random.Random) -> Iterator[Node]:
    """The nodes that stand in one place one after another: a single one unless the pool's are lost."""
    start, end = span
    born = start - rng.randrange(600, 86400)
    while born < end:
        lost = max(born, start) + rng.randrange(_SHORTEST_LIFE, _LONGEST_LIFE) if pool == SPOT else None
        lost = None if lost is not None and lost >= end else lost
        yield _node(pool, size, sharing, (born, lost), rng)
        if lost is None:
            return
        born = lost + rng.randrange(120, 900)


def _node(pool: str, size: int, sharing: Sharing, life: tuple[int, int | None], rng: random.Random) -> Node:
    kind = POOLS[pool]
    # Only A100s can be cut by MIG; the others stay whole in such a world.
    cut = Sharing.WHOLE if sharing is Sharing.MIG and "A100" not in kind.label else sharing
    devices = tuple(_device(index, kind, cut, rng) for index in range(size))
    return Node(
        name=f"ip-10-0-{rng.randrange(256)}-{rng.randrange(256)}-{rng.getrandbits(16):04x}.ec2.internal",
        pool=pool,
        gpu_kind=kind.label,
        product=f"{kind.label}-SHARED" if cut is Sharing.TIME_SLICED else kind.label,
        model=kind.model,
        created=life[0],
        removed=life[1],
        devices=devices,
        advertised=_advertised(devices, cut),
        replicas=REPLICAS if cut is Sharing.TIME_SLICED else 1,
        memory_mib=kind.memory_mib,
    )


def _device(index: int, kind: Kind, cut: Sharing, rng: random.Random) -> Device:
    text = f"{rng.getrandbits(128):032x}"
    uuid = f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    return Device(uuid, index, kind.memory_mib, tuple(_slots(uuid, cut)))


def _slots(uuid: str, cut: Sharing) -> Iterator[Slot]:
    if cut is Sharing.WHOLE:
        yield Slot(uuid, 0, "gpu", 1.0)
    elif cut is Sharing.MIG:
        for number, (profile, slices, instance) in enumerate(_MIG_CUT):
            yield Slot(uuid, number, f"mig_{profile.replace('.', '_')}", slices / 7, instance, profile)
    else:
        parts = REPLICAS if cut is Sharing.TIME_SLICED else QUARTERS
        for number in range(parts):
            yield Slot(uuid, number, "gpu", 1 / parts)


def _advertised(devices: tuple[Device, ...], cut: Sharing) -> dict[str, int]:
    """What the device plugin offers, by sanitised name: HAMi multiplies cards by its split, not by the quarters."""
    if cut is Sharing.HAMI:
        return {"nvidia_com_gpu": len(devices) * HAMI_SPLIT}
    offered: dict[str, int] = {}
    for device in devices:
        for slot in device.slots:
            resource = f"nvidia_com_{slot.unit}"
            offered[resource] = offered.get(resource, 0) + 1
    return offered
