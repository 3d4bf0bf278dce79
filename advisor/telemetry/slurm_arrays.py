"""Job ids of Slurm: which line is a step, which tasks an array stands for, and how many of them may run at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from advisor.telemetry.interpret import Unfit

__all__ = ["MOST_TASKS", "JobIds", "WaitingArray", "is_step", "job_ids", "usable_at_once"]

MOST_TASKS = 100_000
"""Tasks of one line that are read as jobs; Slurm's own limit may be set as high as four million."""

_PLAIN = re.compile(r"([0-9]+)(?:_[0-9]+|\+[0-9]+)?")
_ARRAY = re.compile(r"([0-9]+)_\[([^\]%]*)(?:%([0-9]{1,9}))?\]")
_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")


@dataclass(frozen=True, slots=True)
class JobIds:
    """The jobs one line stands for: ``ids`` as ``8123_1``, of the array ``root`` (or the job itself).

    ``throttle`` is how many tasks of the array may run at once, None where that is not limited.
    """

    root: str
    ids: tuple[str, ...]
    throttle: int | None = None


def is_step(text: str) -> bool:
    """Whether an id is that of a step (``123.batch``, ``123_4.0``); its job has a line of its own."""
    return "." in text and "." in text.rpartition("]")[2]


def job_ids(text: str, most: int = MOST_TASKS) -> JobIds:
    """The jobs of an id: ``123``, ``123_4``, ``123+1``, or ``123_[1,4,9-15:2%4]``, which stands for its tasks.

    Raises:
        Unfit: it is no id of a job, it was cut short, or it stands for more than ``most`` tasks.
    """
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        return JobIds(plain[1], (text,))
    if "..." in text:
        raise Unfit("array_cut_short", f"id {text!r}: write the file with SLURM_BITSTR_LEN=0 to get all tasks")
    array = _ARRAY.fullmatch(text)
    if array is None:
        raise Unfit("bad_id", f"id {text!r} is no job of Slurm") if text else Unfit("no_id", "its id is empty")
    root, expression, throttle = array.groups()
    ranges = [_range(part.strip(), text) for part in expression.split(",")]
    total = sum(len(each) for each in ranges)
    if total > most:
        raise Unfit("array_too_large", f"id {text!r} stands for {total} tasks; at most {most} are read")
    tasks = dict.fromkeys(task for each in ranges for task in each)
    # A throttle of zero is Slurm's word for none.
    return JobIds(root, tuple(f"{root}_{task}" for task in tasks), int(throttle or 0) or None)


def _range(part: str, text: str) -> range:
    found = _RANGE.fullmatch(part)
    if found is None:
        raise Unfit("bad_id", f"id {text!r}: {part!r} is no range of tasks")
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    step = 1 if found[3] is None else int(found[3])
    if last < first or step < 1:
        raise Unfit("bad_id", f"id {text!r}: {part!r} is no range of tasks")
    return range(first, last + 1, step)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingArray:
    """Tasks of one array that wait, each for ``gpus`` GPUs, while ``running`` others of it run.

    ``throttle`` is how many of its tasks may run at once, None for all.
    """

    tasks: int
    gpus: float
    throttle: int | None = None
    running: int = 0

    @property
    def usable_gpus(self) -> float:
        """GPUs its waiting tasks could use now, were there any number of them."""
        if self.throttle is None:
            return self.tasks * self.gpus
        return max(0, min(self.tasks, self.throttle - self.running)) * self.gpus


def usable_at_once(arrays: Iterable[WaitingArray]) -> float:
    """GPUs that all waiting tasks together could use now: what their throttles hold back is backlog, not demand."""
    return sum(array.usable_gpus for array in arrays)
