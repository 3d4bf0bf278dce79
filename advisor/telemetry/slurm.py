"""Job history from Slurm: a file of accounting as ``sacct --parsable2`` writes it.

What is taken from it:

- Every job line is a run; runs of one job (``--duplicates``) become one, see ``slurm_runs``. Steps are passed
  over: the job's own line has its resources.
- A run ended by the system (``TIMEOUT``, ``NODE_FAIL``, ``PREEMPTED``) is censored at its end: it would have gone on.
- A job that ended without having started is one that was cancelled before its start.
- Jobs that wait or run are taken as they stand; a file written later says how they ended. A run that goes on a day
  beyond its limit was lost by Slurm (a runaway job) and is censored at the limit.
- Waiting arrays are as many waiting jobs as they have tasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from advisor.domain.ingest import PARTITIONS, JobBatch, Rejection
from advisor.domain.jobs import Job
from advisor.domain.units import counted, utc
from advisor.errors import Refused
from advisor.telemetry.interpret import Unfit
from advisor.telemetry.mapping import zone_called
from advisor.telemetry.slurm_arrays import WaitingArray, usable_at_once
from advisor.telemetry.slurm_fields import Fate
from advisor.telemetry.slurm_lines import NoGpus, SacctLines
from advisor.telemetry.slurm_runs import SacctRun, job_of, joined, knowledge, overdue
from advisor.telemetry.slurm_table import SACCT_COMMAND, SacctTable, read_sacct
from advisor.telemetry.source import Progress
from advisor.telemetry.tally import RejectionTally

__all__ = ["SACCT_COMMAND", "SLURM", "SlurmFile"]

SLURM = "slurm"
"""Name of the source unless another is given."""

_STEP = 2000
_USAGE = frozenset({"tresusageinave", "tresusageinmax", "tresusageintot"})
_NO_GPUS = "no_gpus"
# A partition that is named for GPUs and on which no job has any, is one where the site does not count them.
_NAMED_FOR_GPUS = re.compile(
    r"gpu|cuda|(?:^|[^a-z0-9])(?:[abhvp][0-9]{2,3}|gb?[0-9]{3}|l4|l40s?|t4|k80|rtx[0-9]*|mi[0-9]{2,3}x?|dgx|hgx)(?:$|[^a-z0-9])",
    re.IGNORECASE,
)


class SlurmFile:
    """A file of Slurm's accounting as a source. It is read whole every time.

    Local times that happen twice are taken as the first of the two, those that never happen are read
    with the offset in force before the change.
    """

    def __init__(
        self, path: Path, *, zone: str | None = None, source: str | None = None, progress: Progress | None = None
    ) -> None:
        """Read ``path``, written by a cluster whose clock is in ``zone`` (an IANA name; UTC is assumed without one).

        ``source`` names the stream of jobs; files of different clusters must not share it.

        Raises:
            Refused: no such zone, or an empty source name.
        """
        if source is not None and not source.strip():
            raise Refused("source", source, "it must not be empty", "Leave it out, or give a name.")
        self._path = path
        self._zone = ZoneInfo("UTC") if zone is None else zone_called("zone", zone)
        self._zone_stated = zone is not None
        self._name = SLURM if source is None else source
        self._progress = progress

    @property
    def name(self) -> str:
        """The name given, or ``slurm``."""
        return self._name

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """Every job of the file that asks for GPUs, whatever ``since``; see :class:`Source`.

        A file without any such job is an empty batch: nothing happened in its window.

        Raises:
            Refused: the file cannot be read, lacks a column, or holds jobs of which none can be read.
        """
        del since  # an old job may have ended only now, so its times do not tell what is new
        now = utc(now, "now")
        tally = RejectionTally()
        table = read_sacct(self._path, tally)
        reading = _Reading(table, SacctLines(table.at, self._zone, zone_stated=self._zone_stated, now=now), tally, now)
        jobs = tuple(reading.jobs(self._progress))
        rejections = tally.rejections()
        if not jobs and any(each.reason != _NO_GPUS for each in rejections):
            raise Refused("slurm", str(self._path), _why_none(rejections), f"Write it with: {SACCT_COMMAND} (one line)")
        events = (moment for job in jobs for moment in (job.submit, job.start, job.gone_at) if moment is not None)
        return JobBatch(
            source=self._name,
            jobs=jobs,
            rejections=rejections,
            watermark=max(events, default=None),
            notes=reading.notes(),
        )


def _why_none(rejections: Iterable[Rejection]) -> str:
    return "none of its jobs can be read: " + "; ".join(f"{r.count} x {r.reason} ({r.example})" for r in rejections)


class _Reading:
    """One pass over one file."""

    def __init__(self, table: SacctTable, lines: SacctLines, tally: RejectionTally, now: datetime) -> None:
        self._table = table
        self._lines = lines
        self._tally = tally
        self._now = now
        self._runs: dict[str, list[SacctRun]] = {}
        self._without: dict[str, list[int]] = {}
        self._counted_on: set[str] = set()
        self._said: Counter[str] = Counter()
        self._waiting: Counter[tuple[str, float, int | None]] = Counter()
        self._running: Counter[str] = Counter()

    def jobs(self, progress: Progress | None) -> Iterator[Job]:
        """The jobs, in the order in which their ids first appear."""
        self._collect(progress)
        self._settle_without_gpus()
        last = max((m for runs in self._runs.values() for run in runs for m in _moments(run)), default=self._now)
        for runs in self._runs.values():
            run = self._one(runs)
            if overdue(run, last):
                self._said["overdue"] += 1
                run = replace(run, fate=Fate.CUT_OFF, end=_limit_of(run))
            try:
                job = job_of(run, self._now)
            except Unfit as error:
                self._tally.add(error.reason, f"row {run.row}: job {run.id}: {error.detail}")
                continue
            self._note(run)
            yield job

    def notes(self) -> tuple[str, ...]:
        """What had to be assumed, as sentences."""
        said = self._said
        notes = [PARTITIONS] if self._runs else []
        notes += self._lines.notes()
        if said["requeued"]:
            notes.append(
                f"jobs that ran more than once, begun with their first run and paused between two: {said['requeued']}"
            )
        if said["het"]:
            notes.append(f"parts of heterogeneous jobs, read as jobs of their own: {said['het']}")
        if self._lines.mixed:
            notes.append(
                f"lines that name GPUs of several kinds, all counted and the kind left open: {self._lines.mixed}"
            )
        if said["overdue"]:
            notes.append(f"jobs a day beyond their time limit, censored there (runaway jobs): {said['overdue']}")
        uncounted = sorted(name for name in self._without if self._not_counted(name))
        if uncounted:
            notes.append(
                f"no job on partition {', '.join(uncounted)} names a GPU: the site does not seem to track GPUs "
                "(AccountingStorageTRES=gres/gpu in slurm.conf), so how many were used is not known"
            )
        if self._without and not self._runs and not uncounted:
            notes.append(
                "no job in the file names a GPU: if there are any, the site does not track them; set "
                "AccountingStorageTRES=gres/gpu in slurm.conf, and write the file with AllocTRES and ReqTRES"
            )
        if _USAGE & self._table.at.keys():
            notes.append("TRESUsageIn columns are not read: what the GPUs did is not known of these jobs")
        return (*notes, *self._throttles())

    def _collect(self, progress: Progress | None) -> None:
        rows = self._table.rows
        for done, (row, cells) in enumerate(rows, start=1):
            if progress is not None and (done % _STEP == 0 or done == len(rows)):
                progress(done, len(rows))
            try:
                for run in self._lines.runs(row, cells):
                    self._runs.setdefault(run.id, []).append(run)
                    self._counted_on.add(run.pool or "")
            except Unfit as error:
                self._tally.add(error.reason, f"row {row}: {error.detail}")
            except NoGpus as none:
                self._without.setdefault(none.partition, []).append(row)

    def _not_counted(self, partition: str) -> bool:
        return partition not in self._counted_on and _NAMED_FOR_GPUS.search(partition) is not None

    def _settle_without_gpus(self) -> None:
        """Only when all is read is it known on which partitions GPUs are counted."""
        for partition, rows in self._without.items():
            for row in rows:
                if self._not_counted(partition):
                    self._tally.add("gpus_not_tracked", f"row {row}: on partition {partition!r} nobody names a GPU")
                else:
                    self._tally.add("no_gpus", f"row {row}: no GPU is named, on partition {partition!r}")

    def _one(self, runs: list[SacctRun]) -> SacctRun:
        """What stands for all lines of one id; those of another job, from before ids began anew, are left out."""
        if len(runs) == 1:
            return runs[0]
        ordered = sorted(runs, key=lambda run: (run.submit, knowledge(run)))
        # The same submission again is the same run, from a file that overlaps: what knows most of it counts.
        by_submission = {run.submit: run for run in ordered}
        last = ordered[-1]
        own = []
        for run in by_submission.values():
            if (run.user, run.namespace, run.name) == (last.user, last.namespace, last.name):
                own.append(run)
            else:
                self._tally.add("id_of_another_job", f"row {run.row}: id {run.id!r} is of a later job too")
        if len(own) > 1:
            self._said["requeued"] += 1
        return joined(own)

    def _note(self, run: SacctRun) -> None:
        """Count what is said of all jobs together."""
        if "+" in run.id:
            self._said["het"] += 1
        if run.waits and run.id != run.root and "+" not in run.id:
            self._waiting[run.root, run.gpus, run.throttle] += 1
        elif run.fate is Fate.RUNS:
            self._running[run.root] += 1

    def _throttles(self) -> Iterator[str]:
        """What arrays let run at once, where some of them limit it."""
        if all(throttle is None for _, _, throttle in self._waiting):
            return
        arrays = [
            WaitingArray(tasks=tasks, gpus=gpus, throttle=throttle, running=self._running[root])
            for (root, gpus, throttle), tasks in self._waiting.items()
        ]
        tasks, asked = sum(each.tasks for each in arrays), sum(each.tasks * each.gpus for each in arrays)
        yield (
            f"tasks of arrays that wait: {tasks}, for {counted(asked, 'GPU')}, of which their throttles let "
            f"{usable_at_once(arrays):g} be used at once"
        )


def _moments(run: SacctRun) -> Iterator[datetime]:
    yield run.submit
    if run.start is not None:
        yield run.start
    if run.end is not None:
        yield run.end


def _limit_of(run: SacctRun) -> datetime | None:
    if run.start is None or run.time_limit_seconds is None:
        return None
    return run.start + timedelta(seconds=run.time_limit_seconds)
