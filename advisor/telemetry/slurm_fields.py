"""The small languages inside Slurm's accounting fields: lengths of time, states, and resources that are GPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from advisor.telemetry.interpret import Unfit
from advisor.telemetry.tally import UNKNOWN_OUTCOME

__all__ = ["Fate", "GpuAsk", "count_in", "fate_of", "gpus_in", "length_seconds"]

_LENGTH = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9}):([0-9]{1,2})(?::([0-9]{1,2}))?(\.[0-9]{1,9})?")
_SECONDS_A_DAY = 86_400.0
# Centuries: a limit beyond it limits nothing, and a run cannot have lasted so long.
_MOST_SECONDS = 1e10
# No cluster has more; a number beyond it is a slip that would drown every sum it enters.
_MOST_COUNT = 1_000_000
_SOCKETS = re.compile(r"\([^()]*\)")
# "1g.10gb" as a type of its own, or behind the card's: "a100_3g.20gb".
_MIG = re.compile(r"(?:^|[_-])[0-9]g\.[0-9]+gb", re.ASCII)
_SHARES = frozenset({"shard", "mps"})


# Few lengths, counts and lists are different in a file of very many lines; hence the caches.
@lru_cache(maxsize=16_384)
def length_seconds(text: str) -> float | None:
    """Seconds in ``D-HH:MM:SS``, ``HH:MM:SS``, ``MM:SS.mmm``, ``D-HH:MM``.

    None where the text is no length of time: ``UNLIMITED``, ``Partition_Limit``, ``INVALID``, nothing at all, or
    one of centuries.
    """
    found = _LENGTH.fullmatch(text)
    if found is None:
        return None
    days, first, second, third, fraction = found.groups()
    parts = [float(first), float(second)]
    if third is not None:
        parts.append(float(third))
    elif days is not None:
        parts.append(0.0)
    seconds = 0.0
    for part in parts:
        seconds = 60.0 * seconds + part
    seconds += _SECONDS_A_DAY * float(days or 0) + float(fraction or 0)
    return seconds if seconds <= _MOST_SECONDS else None


@lru_cache(maxsize=16_384)
def count_in(text: str) -> int | None:
    """The whole number in ``text``, None where it holds none, or one of more than 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


class Fate(Enum):
    """What a state of Slurm says of a run.

    ``CUT_OFF`` is the system's doing: the run was ended and would have gone on, so its length is a lower
    bound. ``REQUEUED`` is cut off where it has an end, and waits where it has none. ``REVOKED`` waited
    here and was started by another cluster of the federation.
    """

    COMPLETED = auto()
    FAILED = auto()
    CANCELLED = auto()
    CUT_OFF = auto()
    REQUEUED = auto()
    REVOKED = auto()
    RUNS = auto()
    WAITS = auto()


_FATES = {
    "COMPLETED": Fate.COMPLETED,
    "FAILED": Fate.FAILED,
    "OUT_OF_MEMORY": Fate.FAILED,
    "DEADLINE": Fate.FAILED,
    "BOOT_FAIL": Fate.FAILED,
    "LAUNCH_FAILED": Fate.FAILED,
    "RECONFIG_FAIL": Fate.FAILED,
    "CANCELLED": Fate.CANCELLED,
    "TIMEOUT": Fate.CUT_OFF,
    "NODE_FAIL": Fate.CUT_OFF,
    "PREEMPTED": Fate.CUT_OFF,
    "REQUEUED": Fate.REQUEUED,
    "REQUEUE_FED": Fate.REQUEUED,
    "REQUEUE_HOLD": Fate.REQUEUED,
    "SPECIAL_EXIT": Fate.REQUEUED,
    "REVOKED": Fate.REVOKED,
    "RUNNING": Fate.RUNS,
    "SUSPENDED": Fate.RUNS,
    "STOPPED": Fate.RUNS,
    "COMPLETING": Fate.RUNS,
    "CONFIGURING": Fate.RUNS,
    "POWER_UP_NODE": Fate.RUNS,
    "RESIZING": Fate.RUNS,
    "SIGNALING": Fate.RUNS,
    "STAGE_OUT": Fate.RUNS,
    "UPDATE_DB": Fate.RUNS,
    "EXPEDITING": Fate.RUNS,
    "PENDING": Fate.WAITS,
    "RESV_DEL_HOLD": Fate.WAITS,
}


@lru_cache(maxsize=1024)
def fate_of(state: str) -> Fate:
    """What ``state`` says, whoever it is ``by`` and wherever a narrow column has cut it off (``OUT_OF_ME+``).

    Raises:
        Unfit: no state of Slurm is called so.
    """
    words = state.upper().split()
    word = words[0] if words else ""
    fate = _FATES.get(word.rstrip("+"))
    if fate is None and word.endswith("+") and len(word) > 4:
        fate = next((each for name, each in _FATES.items() if name.startswith(word[:-1])), None)
    if fate is None:
        raise Unfit(f"{UNKNOWN_OUTCOME}{word[:40]}", f"state {state!r} is none of Slurm's")
    return fate


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """The GPUs that a list of resources names, all nodes together unless it is a request per node.

    ``kind`` is None where no type is named, or where there are several (``mixed``). ``shared`` says that
    parts of GPUs are named too: shards, MPS, or slices by MIG.
    """

    count: int = 0
    kind: str | None = None
    mixed: bool = False
    shared: bool = False


@lru_cache(maxsize=4096)
def gpus_in(resources: str) -> GpuAsk:
    """The GPUs in a list as ``AllocTRES`` (``cpu=8,gres/gpu:a100=4,gres/gpu=4``) or ``AllocGRES`` (``gpu:a100:4``).

    A type and the total without a type are two names for the same GPUs, so they do not add up; different
    types do. ``gres/gpumem`` and ``gres/gpuutil`` are no GPUs.

    Raises:
        Unfit: the number of GPUs cannot be read.
    """
    untyped = 0
    typed: dict[str, int] = {}
    shared = False
    for part in _SOCKETS.sub("", resources).lower().split(","):
        name, kind, count = _resource(part.strip())
        if name == "gpu" and kind is not None and _MIG.search(kind):
            shared = True
        elif name == "gpu" and kind is not None:
            typed[kind] = typed.get(kind, 0) + count
        elif name == "gpu":
            untyped += count
        elif name in _SHARES:
            shared = True
    if shared:
        # The total without a type counts slices as if they were GPUs.
        untyped = 0
    known = sum(typed.values())
    held = [kind for kind, count in typed.items() if count]
    mixed = len(held) > 1 or (bool(held) and untyped > known)
    return GpuAsk(max(untyped, known), held[0] if held and not mixed else None, mixed, shared)


def _resource(part: str) -> tuple[str, str | None, int]:
    """Name, type and count of one resource; whatever is neither a GPU nor a share of one has no name."""
    name, equals, number = part.partition("=")
    if name.startswith(("gres/", "gres:")):
        name = name[5:]
    tokens = name.split(":")
    if tokens[0] in _SHARES:
        return tokens[0], None, 0
    if tokens[0] != "gpu":
        return "", None, 0
    rest = tokens[1:]
    if not equals and rest and rest[-1].isdigit():
        number = rest.pop()
    elif not equals:
        # As Slurm has it: a resource without a number is one.
        number = "1"
    count = count_in(number)
    if count is None or count > _MOST_COUNT:
        raise Unfit("bad_number", f"resource {part!r}")
    return "gpu", ":".join(rest) or None, count
