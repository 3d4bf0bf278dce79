"""Lists of pods and of nodes, as the OpenB traces write them: what asks for GPUs, and what has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.domain.ingest import Rejection
from advisor.domain.packing import MILLI, HostShape, PodShape
from advisor.errors import Refused
from advisor.telemetry.tables import TableFile
from advisor.telemetry.tally import RejectionTally
from advisor.telemetry.times import number

__all__ = ["ListedPod", "NodeList", "PodList", "read_nodes", "read_pods"]

_POD_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_POD_OPTIONAL = ("gpu_spec", "creation_time", "scheduled_time", "deletion_time")
_NODE_COLUMNS = ("cpu_milli", "memory_mib", "gpu")
_NODE_OPTIONAL = ("sn", "model")


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod's shape; ``submit`` and ``duration`` are seconds, None where the list does not tell when it ran."""

    shape: PodShape
    submit: float | None
    duration: float | None


@dataclass(frozen=True, slots=True)
class PodList:
    """Pods in the order of the list, and what was left out."""

    pods: tuple[ListedPod, ...]
    rejections: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class NodeList:
    """Nodes in the order of the list, and what was left out."""

    hosts: tuple[HostShape, ...]
    rejections: tuple[Rejection, ...]


def read_pods(path: Path) -> PodList:
    """Read a list of pods.

    Raises:
        Refused: the file cannot be read, lacks a column, or holds no usable pod.
    """
    tally = RejectionTally()
    pods = []
    for row, cells in _rows(path, _POD_COLUMNS, _POD_OPTIONAL, tally):
        try:
            pods.append(_pod(cells))
        except (ValueError, Refused) as error:
            tally.add("bad_value", f"row {row}: {error}")
    if not pods:
        raise Refused("--pods", str(path), "no row of it is a pod that can be used", "Give a list with at least one.")
    return PodList(tuple(pods), tally.rejections())


def read_nodes(path: Path) -> NodeList:
    """Read a list of nodes.

    Raises:
        Refused: the file cannot be read, lacks a column, or holds no node with a GPU.
    """
    tally = RejectionTally()
    hosts = []
    for row, cells in _rows(path, _NODE_COLUMNS, _NODE_OPTIONAL, tally):
        try:
            hosts.append(
                HostShape(
                    name=cells.get("sn") or f"node-{row}",
                    cpu_milli=_whole(cells["cpu_milli"]),
                    memory_mib=_whole(cells["memory_mib"]),
                    gpus=_whole(cells["gpu"]),
                    kind=cells.get("model", ""),
                )
            )
        except (ValueError, Refused) as error:
            tally.add("bad_value", f"row {row}: {error}")
    if not sum(host.gpus for host in hosts):
        raise Refused("--nodes", str(path), "no node of it has a GPU", "Give a list of nodes with GPUs.")
    return NodeList(tuple(hosts), tally.rejections())


def _rows(
    path: Path, required: Sequence[str], optional: Sequence[str], tally: RejectionTally
) -> list[tuple[int, dict[str, str]]]:
    file = TableFile(path)
    header = file.header()
    missing = [column for column in required if column not in header]
    if missing:
        limit = f"it lacks the columns {', '.join(missing)}"
        raise Refused("list", str(path), limit, f"Give a table with {', '.join(required)}.")
    columns = [*required, *(column for column in optional if column in header)]
    read = file.read(columns, tally)
    return [(row, dict(zip(columns, cells, strict=True))) for row, cells in read.rows]


def _pod(cells: Mapping[str, str]) -> ListedPod:
    gpus = _whole(cells["num_gpu"])
    kinds = tuple(sorted(kind for kind in cells.get("gpu_spec", "").split("|") if kind))
    shape = PodShape(
        cpu_milli=_whole(cells["cpu_milli"]),
        memory_mib=_whole(cells["memory_mib"]),
        gpus=gpus,
        gpu_milli=_whole(cells["gpu_milli"] or str(MILLI)) if gpus else 0,
        kinds=kinds,
    )
    submit, start, end = (_moment(cells, name) for name in ("creation_time", "scheduled_time", "deletion_time"))
    duration = end - start if start is not None and end is not None and end > start else None
    return ListedPod(shape, submit, duration)


def _whole(text: str) -> int:
    value = number(text)
    if value != round(value):
        raise ValueError(f"{text} is no whole number")
    return round(value)


def _moment(cells: Mapping[str, str], name: str) -> float | None:
    text = cells.get(name, "")
    return number(text) if text else None
